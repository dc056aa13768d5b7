"""An attacker that connects first and speaks the ranks' protocol is refused and recorded."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from tests.support.patience import PATIENCE_S, until
from tests.toolkit.support.ranks import worlds
from tests.toolkit.support.tiny import events
from toolkit.distributed.rendezvous import Rendezvous, meet
from toolkit.distributed.secure.channel import authenticate_to_server
from toolkit.distributed.secure.secret import shared_secret
from toolkit.distributed.secure.store_server import StoreClient
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir

HELLO_BYTES, PROOF_BYTES = 36, 64
RANKS = worlds(3, "attacked")


class Wiretapped(socket.socket):
    """A connection of a genuine rank that a stranger records."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = b""

    def sendall(self, content: Any, flags: int = 0) -> None:
        self.heard += bytes(content)
        super().sendall(content, flags)


class Attacked:
    """Rank 0 of an attempt of three, which waits for the others."""

    def __init__(self, run: RunDir, threads: ThreadPoolExecutor, links: ExitStack) -> None:
        self.run, self._threads, self._links = run, threads, links
        self._rank_0 = self._start(0)
        place = until(lambda: read_json(run.rendezvous(RANKS[0].nonce)))
        self._place = ("127.0.0.1", place["port"])

    def _start(self, rank: int) -> Future[Rendezvous]:
        return self._threads.submit(meet, self.run, RANKS[rank], PATIENCE_S)

    def connect(self) -> socket.socket:
        """A stranger's connection, which stays open to the end."""
        link = self._links.enter_context(socket.create_connection(self._place, PATIENCE_S))
        assert link.recv(HELLO_BYTES, socket.MSG_WAITALL).startswith(b"stk1")
        return link

    def record(self) -> bytes:
        """What a genuine rank sends: its proof, and a message that adds 1 to a value."""
        secret = shared_secret(self.run.secret(RANKS[1].nonce), RANKS[1].nonce, {})
        link = self._links.enter_context(Wiretapped())
        link.connect(self._place)
        channel = authenticate_to_server(link, secret, PATIENCE_S)
        assert StoreClient(lambda: channel)("add", key="recorded", amount=1) == 1
        return link.heard

    def await_refusal(self) -> None:
        until(lambda: events(self.run, "connection_refused"))

    def join(self) -> list[Rendezvous]:
        """The genuine ranks come, and all meet."""
        return [each.result() for each in (self._rank_0, self._start(1), self._start(2))]


@pytest.fixture
def attacked(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Attacked]:
    # Chosen by a rendezvous, unless it is set.
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    with ThreadPoolExecutor(8) as threads, ExitStack() as links:
        yield Attacked(RunDir(tmp_path), threads, links)


def assert_undisturbed(attacked: Attacked) -> Any:
    """All three ranks meet, each counts once, and the stranger is named. Returns the store of rank 0."""
    joined = attacked.join()
    store = joined[0].store
    assert [rank for rank in (-1, 1, 2, 3, 99) if store.check([f"joined/{rank}"])] == [1, 2]
    assert [store.get(f"claimed/{rank}") for rank in (1, 2)] == [b"1", b"1"]
    assert "evil" not in store.get("joined/1").decode()
    for each in joined:
        each.close()
    assert [line["address"] for line in events(attacked.run, "connection_refused")] == ["127.0.0.1"]
    return store


def message(content: object, proof: bytes = bytes(32)) -> bytes:
    text = json.dumps(content).encode()
    return len(text).to_bytes(4, "big") + proof + text


def claims(rank: int) -> bytes:
    """What a rank says when it joins."""
    arrival = json.dumps({"rank": rank, "size": 3, "host": "evil", "route": "127.0.0.1"})
    claim = message({"do": "add", "key": f"claimed/{rank}", "amount": 1})
    return claim + message({"do": "set", "key": f"joined/{rank}", "value": arrival})


def answer_to(link: socket.socket) -> bytes:
    """All that comes back until the other side closes the connection."""
    heard = b""
    with suppress(ConnectionError):
        while part := link.recv(4096):
            heard += part
    return heard


@pytest.mark.parametrize(
    "rank, proof_bytes", [*((rank, PROOF_BYTES) for rank in (1, 0, 2, 3, 99, -1)), (1, 0)]
)
def test_a_claim_with_a_false_or_no_proof_is_refused(attacked: Attacked, rank: int, proof_bytes: int) -> None:
    link = attacked.connect()
    link.sendall(os.urandom(proof_bytes) + claims(rank))
    assert answer_to(link) == b""
    attacked.await_refusal()
    assert_undisturbed(attacked)


def test_a_replayed_proof_is_refused_with_the_messages_after_it(attacked: Attacked) -> None:
    recorded = attacked.record()
    link = attacked.connect()
    link.sendall(recorded)
    assert answer_to(link) == b""
    attacked.await_refusal()
    # The message that followed did not count a second time.
    assert assert_undisturbed(attacked).get("recorded") == b"1"


def test_many_silent_connections_do_not_block_the_ranks(attacked: Attacked) -> None:
    """More than may prove themselves at once: the oldest are closed."""
    links = [attacked.connect() for _ in range(150)]
    attacked.await_refusal()
    assert_undisturbed(attacked)
    assert answer_to(links[0]) == b""
