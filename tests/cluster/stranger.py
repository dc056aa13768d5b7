"""A stranger on a run's host or network: another user who joins it, floods it, and answers in its place.

python -m tests.cluster.stranger MARKER [ADDRESS PORT]: attacks what listens there. Without an address it
attacks each port that opens on this host. When its input ends, it says in JSON what it has done. A process
that unpickles what the stranger sends makes the file MARKER.
"""

from __future__ import annotations

import json
import os
import pickle
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_S

NOBODY = 65534
READY, CONNECTED = "ready", "connected"
_LISTENS = "0A"
_ROUND_S = 0.01
#: How long the flood waits for the claims: in it, their connections would be closed as the oldest.
_CLAIMS_FIRST_S = 0.3
_LINK_S = 1.0
_TIMEOUT = timedelta(seconds=2)


class Payload:
    """Makes the marker, wherever it is unpickled."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.marker}",)


def listening() -> Iterator[tuple[str, int]]:
    """Where this host listens, as every user may read."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *_ = line.split()
        if state == _LISTENS:
            address, port = local.split(":")
            yield socket.inet_ntoa(bytes.fromhex(address)[::-1]), int(port, 16)
    for line in Path("/proc/net/tcp6").read_text().splitlines()[1:]:
        _, local, _, state, *_ = line.split()
        if state == _LISTENS:
            yield "127.0.0.1", int(local.split(":")[1], 16)


def join_as_rank(marker: str, address: str, port: int, done: Counter[str]) -> None:
    """Speak to torch's own store, where one listens: arrive as rank 1, and write over what others say."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # not in __all__

    host = "127.0.0.1" if address == "0.0.0.0" else address
    store: Any = TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=_TIMEOUT)
    done["stores"] += 1
    payload = pickle.dumps(Payload(marker))
    arrival = json.dumps({"rank": 1, "size": 2, "host": "evil", "route": "127.0.0.1"})
    for prefix in ("", *(f"stk/torchrun-{port}.{restart}/" for restart in range(2))):
        store.set(f"{prefix}joined/1", arrival)
        store.set(f"{prefix}taken", "the ranks contradict each other, says a stranger")
        store.set(f"{prefix}go", json.dumps({"route": "127.0.0.1"}))
        store.set(f"{prefix}place", payload)


def flood(marker: str, address: str, port: int, done: Counter[str]) -> None:
    """Connect as often as it goes, and say what would hurt a careless reader."""
    payload = pickle.dumps(Payload(marker))
    sayings = (payload, b'{"node": 1e999, "host": "x"}\n', b"[" * 50_000, b'{"node": 99, "host": "x"}\n', b"")
    links = []
    for number in range(60):
        with suppress(OSError):
            link = socket.create_connection((address, port), _LINK_S)
            links.append(link)
            done["connections"] += 1
            link.sendall(sayings[number % len(sayings)])
    for link in links:
        link.close()


def claim_ranks(marker: str, address: str, port: int, done: Counter[str]) -> None:
    """Speak the ranks' own protocol without their secret: say nothing, prove falsely, and go on as a rank."""
    for saying in _claims():
        while not _is_heard(saying, address, port):
            time.sleep(_ROUND_S)
        done["claims"] += 1


def _is_heard(saying: bytes, address: str, port: int) -> bool:
    """Whether a rank greets and takes this. A busy one may not greet at once; something else never does.

    Raises ConnectionRefusedError where nothing listens any more.
    """
    try:
        with socket.create_connection((address, port), _LINK_S) as link:
            if link.recv(36, socket.MSG_WAITALL).startswith(b"stk1"):
                link.sendall(saying)
                return True
    except (TimeoutError, ConnectionResetError):
        pass
    return False


def _claims() -> Iterator[bytes]:
    for rank in (1, 0, 99, -1):
        arrival = json.dumps({"rank": rank, "size": 2, "host": "evil", "route": "127.0.0.1"})
        claim = {"do": "add", "key": f"claimed/{rank}", "amount": 1}
        join = {"do": "set", "key": f"joined/{rank}", "value": arrival}
        yield b""
        yield os.urandom(64)
        yield os.urandom(64) + _message(claim) + _message(join)


def _message(content: object) -> bytes:
    """A message as the ranks send it, with a proof that is none."""
    text = json.dumps(content).encode()
    return len(text).to_bytes(4, "big") + bytes(32) + text


def attack(marker: str, places: Callable[[], Iterator[tuple[str, int]]], done: Counter[str]) -> None:
    """Attack all that listens there, over and over."""
    known: set[tuple[str, int]] = set()
    while True:
        for address, port in places():
            arguments = (marker, address, port, done)
            if (address, port) not in known and _is_open(address, port):
                known.add((address, port))
                _in_background(claim_ranks, *arguments).join(_CLAIMS_FIRST_S)
                _in_background(join_as_rank, *arguments)
                print(CONNECTED, flush=True)
            flood(*arguments)
        time.sleep(_ROUND_S)


def _is_open(address: str, port: int) -> bool:
    with suppress(OSError), socket.create_connection((address, port), _LINK_S):
        return True
    return False


def _in_background(function: Callable[..., None], *arguments: Any) -> threading.Thread:
    thread = threading.Thread(target=_quietly, args=(function, *arguments), daemon=True)
    thread.start()
    return thread


def _quietly(function: Callable[..., None], *arguments: Any) -> None:
    with suppress(Exception):
        function(*arguments)


def main(marker: str, *place: str) -> None:
    """Become another user, and attack."""
    # While this process may still read them.
    import encodings.idna  # noqa: F401

    import torch.distributed  # noqa: F401

    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    done: Counter[str] = Counter()
    where = (lambda: iter([(place[0], int(place[1]))])) if place else listening
    threading.Thread(target=attack, args=(marker, where, done), daemon=True).start()
    print(READY, flush=True)
    sys.stdin.read()
    print(json.dumps(done), flush=True)
    os._exit(0)


@dataclass(slots=True)
class Stranger:
    """A stranger at work.

    done  what it has done: connections that it made, torch's stores that it has written to, claims to be a
          rank in the ranks' own protocol; once it has ended
    """

    process: subprocess.Popen[str]
    done: Counter[str] = field(default_factory=Counter)

    def await_word(self, word: str) -> None:
        """Wait until it says that it is ready, or that it has made a first connection to somebody."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"{word}\n"


@contextmanager
def stranger(on_host: Callable[[list[str]], list[str]], marker: Path, *place: object) -> Iterator[Stranger]:
    """A stranger at work meanwhile; what it has done is there in the end.

    on_host  makes a command run on the host where it sits
    marker   made if any process unpickles what it sends
    """
    command = [sys.executable, "-m", "tests.cluster.stranger", str(marker), *map(str, place)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        on_host(command), cwd=Path(__file__).parents[2], stdin=pipe, stdout=pipe, text=True
    )
    found = Stranger(process)
    try:
        found.await_word(READY)
        yield found
    finally:
        output, _ = process.communicate(timeout=PATIENCE_S)
        found.done.update(json.loads(output.splitlines()[-1]))


if __name__ == "__main__":
    main(*sys.argv[1:])
