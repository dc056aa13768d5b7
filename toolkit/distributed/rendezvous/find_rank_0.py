"""The three ways in which ranks find each other."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from torch.distributed import TCPStore  # type: ignore[attr-defined]  # not in __all__

from toolkit.distributed.rendezvous.files import by_file
from toolkit.distributed.rendezvous.network import find_published, host, join, publish, understood
from toolkit.distributed.rendezvous.result import JoiningRank, Place, Rendezvous
from toolkit.distributed.secure.addresses import addresses_of, known_addresses, own_addresses
from toolkit.distributed.secure.secret import given_secret, shared_secret
from toolkit.errors import RendezvousError, UserError
from toolkit.run.events import note_event
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World

#: The event that rank 0 listens on several interfaces until all ranks have joined.
EVENT = "listens_on_every_address"
#: Advice if rank 0 cannot listen at MASTER_PORT.
_OTHER_PORT = "Start all ranks again with another MASTER_PORT, one that is free on that host"
_BY_A_LAUNCHER = f"{_OTHER_PORT} (torchrun: --master-port, or --rdzv-endpoint HOST:PORT)."
_BY_THE_EXPERIMENT = f"{_OTHER_PORT}, or leave train.rendezvous at auto, which needs no port."


def meet(
    run: RunDir, world: World, timeout_s: float, way: str = "auto", environ: Mapping[str, str] = os.environ
) -> Rendezvous:
    """Open or join the store of this attempt. Collective: every rank of the world must call it.

    way  the value of train.rendezvous

    Raises RendezvousError after timeout_s seconds, naming the missing ranks (on rank 0) or the host that
    cannot reach rank 0 (on the others), and UserError if the ranks contradict each other or the secret is not
    safe. Connections that do not prove the secret are recorded in events.jsonl.
    """
    deadline = time.monotonic() + timeout_s
    secret = shared_secret(run.secret(world.nonce), world.nonce, environ)
    joining = JoiningRank(run=run, world=world, secret=secret, deadline=deadline)
    if way == "file":
        return by_file(joining)
    if way == "env" or world.master_addr is not None:
        return by_environment(joining, environ)
    if world.is_main:
        return host(
            joining, where_to_listen(joining, world.known_as), publish=partial(publish, joining.publication)
        )
    return join(joining, partial(find_published, joining.publication))


def by_environment(joining: JoiningRank, environ: Mapping[str, str]) -> Rendezvous:
    """Meet at MASTER_ADDR and MASTER_PORT; under torchrun, at a free port beside its store. Collective."""
    address, port = environ.get("MASTER_ADDR"), environ.get("MASTER_PORT", "")
    if not address or not port.isdecimal():
        raise UserError(
            f"this rendezvous needs MASTER_ADDR and MASTER_PORT, but they are {address!r} and {port!r}: set "
            "them to rank 0's host and a free port there, or leave train.rendezvous at auto"
        )
    if environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        return _beside_torchrun(joining, address, int(port), environ)
    if joining.world.is_main:
        named = addresses_of(address, joining.world.nodes)
        cure = _BY_THE_EXPERIMENT if joining.world.master_addr is None else _BY_A_LAUNCHER
        return host(joining, named or where_to_listen(joining, [address]), int(port), cure=cure)
    place = Place(host=address, addresses=[address], port=int(port))
    return join(joining, lambda: place)


def _beside_torchrun(joining: JoiningRank, address: str, port: int, environ: Mapping[str, str]) -> Rendezvous:
    """Meet at a free port of rank 0, which publishes it in the run's folder.

    With a secret from the user, the port is published in torchrun's store, signed, as anyone can write there.
    """
    announce: Callable[[Place], None] = partial(publish, joining.publication)
    find: Callable[[], Place | None] = partial(find_published, joining.publication)
    if given_secret(environ) is not None:
        key = _SignedKey(joining, address, port)
        announce, find = key.publish, key.find
    if joining.world.is_main:
        rendezvous = host(joining, where_to_listen(joining, [address]), publish=announce)
    else:
        rendezvous = join(joining, find)
    return replace(rendezvous, world=replace(rendezvous.world, master_addr=address, master_port=port))


class _SignedKey:
    """A key of a store that anyone can write; a value without a valid signature counts as missing."""

    def __init__(self, joining: JoiningRank, address: str, port: int) -> None:
        self._key = f"stk/{joining.world.nonce}/place"
        self._secret = joining.secret
        try:
            self._store: Any = TCPStore(
                address, port, is_master=False, wait_for_workers=False, timeout=joining.remaining
            )
        except RuntimeError as error:
            raise RendezvousError(
                f"host {socket.gethostname()} (rank {joining.world.rank}) cannot reach torchrun's store at "
                f"{address} port {port}: check the network or firewall between these hosts"
            ) from error

    def publish(self, place: Place) -> None:
        """Publish the place of rank 0."""
        text = json.dumps(place)
        self._store.set(self._key, json.dumps({"place": text, "proof": self._proof(text)}))

    def find(self) -> Place | None:
        """Return the place of rank 0; None without a valid one."""
        with suppress(RuntimeError, ValueError, LookupError, TypeError, AttributeError):
            if self._store.check([self._key]):
                found = json.loads(self._store.get(self._key))
                if hmac.compare_digest(found["proof"].encode(), self._proof(found["place"]).encode()):
                    return understood(json.loads(found["place"]))
        return None

    def _proof(self, text: str) -> str:
        return hmac.new(self._secret, f"{self._key}|{text}".encode(), hashlib.sha256).hexdigest()


def where_to_listen(joining: JoiningRank, known_as: Sequence[str]) -> list[str]:
    """Return the addresses at which rank 0 listens; record in events.jsonl if none is known.

    known_as  names or addresses of this host, then of other hosts, as the scheduler knows them
    """
    nodes = joining.world.nodes
    if nodes > 1 and (known := known_addresses(known_as)):
        return known
    every = own_addresses(nodes)
    if len(every) > 1:
        note_event(joining.run, EVENT, addresses=every, looked_up=list(known_as))
    return every
