"""Rendezvous: rank 0 opens a store, and the others find it, in one of three ways.

By publication: on a free port, which rank 0 writes into the run folder. No port is agreed on beforehand, so
two jobs on one host cannot collide; the file is named by this very start, so a stale one is never joined.
By the environment: at MASTER_ADDR and MASTER_PORT, where torchrun or a user says so. By a file: the store
is a file in the run folder, named by the start, too.
Every rank first proves that it reaches rank 0, so that a network fault is named within seconds.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict, cast

import psutil
from torch.distributed import FileStore, PrefixStore, TCPStore  # type: ignore[attr-defined]  # not in __all__

from toolkit.arrival import arrive, await_all
from toolkit.errors import RendezvousError, UserError
from toolkit.files import append_json_line, read_json, read_json_lines, write_json
from toolkit.world import World

_POLL_S = 0.02
_CONNECT_S = 2.0
_LOOPBACK = "127.0.0.1"
#: Any port does: a datagram socket sends nothing when it is connected.
_DISCARD = 9


class Place(TypedDict):
    """Where rank 0's store is."""

    host: str
    addresses: list[str]
    port: int


@dataclass(frozen=True, slots=True)
class Meeting:
    """An open store that all ranks have joined, and the world with rank 0's address in it.

    file  what rank 0 is to remove in the end
    """

    store: Any
    world: World
    file: Path | None = None

    def close(self) -> None:
        """Leave nothing behind."""
        if self.file is not None and self.world.is_main:
            self.file.unlink(missing_ok=True)


def meet(
    world: World,
    publication: Path,
    timeout_s: float,
    way: str = "auto",
    environ: Mapping[str, str] = os.environ,
) -> Meeting:
    """Open or join the store of this start. Collective: every rank of the world must call it.

    way: of train.rendezvous. Raises RendezvousError, which names the ranks that are missing (on rank 0) or
    the host that cannot reach rank 0 (on the others), after timeout_s seconds, and UserError where the
    ranks contradict each other.
    """
    deadline = time.monotonic() + timeout_s
    if way == "file":
        return _by_file(world, publication, deadline)
    if way == "env" or world.master_addr is not None:
        return _by_environment(world, publication, deadline, environ)
    if world.is_main:
        store = TCPStore("0.0.0.0", 0, world.size, is_master=True, wait_for_workers=False)
        addresses = _own_addresses(world)
        publication.parent.mkdir(parents=True, exist_ok=True)
        write_json(publication, {"host": socket.gethostname(), "addresses": addresses, "port": store.port})
        return _host(world, store, store.port, addresses[0], publication, deadline)
    return _join(world, _await_publication(world, publication, deadline), publication, deadline)


# -- at a port


def _host(
    world: World, store: Any, port: int, own_address: str, publication: Path, deadline: float
) -> Meeting:
    address = await_all(store, world, deadline, own_address, lambda missing: _tell(missing, publication))
    _use_interface_of(address)
    return Meeting(store, replace(world, master_addr=address, master_port=port))


def _tell(missing: set[int], publication: Path) -> str:
    """Missing ranks, with what those left that could not reach rank 0."""
    hosts = {note["rank"]: note["host"] for note in read_json_lines(_notes(publication))}
    return ", ".join(
        f"rank {rank}" + (f" (host {hosts[rank]} cannot reach it)" if rank in hosts else "")
        for rank in sorted(missing)
    )


def _notes(publication: Path) -> Path:
    """Who could not reach rank 0: left in the run folder, because the network is what fails them."""
    return publication.with_name(publication.name + ".unreached")


def _join(world: World, place: Place, publication: Path, deadline: float, prefix: str = "") -> Meeting:
    address, own = _reach(world, place, deadline, _notes(publication))
    remaining = timedelta(seconds=max(1.0, deadline - time.monotonic()))
    store: Any = TCPStore(
        address, place["port"], world.size, is_master=False, wait_for_workers=False, timeout=remaining
    )
    if prefix:
        store = PrefixStore(prefix, store)
    route = arrive(store, world, deadline, address, place["host"])
    _use_interface_of(route if own.startswith("127.") else own)
    return Meeting(store, replace(world, master_addr=route, master_port=place["port"]))


def _by_environment(world: World, publication: Path, deadline: float, environ: Mapping[str, str]) -> Meeting:
    """At the address and port that somebody else chose; torchrun has opened a store there already."""
    address, port = environ.get("MASTER_ADDR"), environ.get("MASTER_PORT", "")
    if not address or not port.isdecimal():
        raise UserError(
            f"the rendezvous is by the environment, but MASTER_ADDR is {address!r} and MASTER_PORT is "
            f"{port!r}: set them to rank 0's host and a free port there, or leave train.rendezvous at auto"
        )
    # Two starts may use one port, and torchrun's store outlives a start.
    prefix = f"stk/{world.nonce}"
    place = Place(host=address, addresses=[address], port=int(port))
    if not world.is_main:
        return _join(world, place, publication, deadline, prefix)
    if environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        remaining = timedelta(seconds=max(1.0, deadline - time.monotonic()))
        store = TCPStore(
            address, int(port), world.size, is_master=False, wait_for_workers=False, timeout=remaining
        )
    else:
        store = TCPStore("0.0.0.0", int(port), world.size, is_master=True, wait_for_workers=False)
    own_address = _own_addresses(world)[0]
    return _host(world, PrefixStore(prefix, store), int(port), own_address, publication, deadline)


# -- through a file


def _by_file(world: World, publication: Path, deadline: float) -> Meeting:
    """The store is a file of this very start; that and its lock are all that the ranks need."""
    if world.master_addr is not None:
        raise UserError(
            "train.rendezvous is file, but a launcher has set MASTER_ADDR, and may start again under the "
            "same name, which would join a stale file: leave train.rendezvous at auto"
        )
    path = publication.with_suffix("").with_suffix(".filestore")
    path.parent.mkdir(parents=True, exist_ok=True)
    store = FileStore(str(path), world.size)
    if world.is_main:
        _remove_others(path)
        addresses = _own_addresses(world)
        store.set("addresses", " ".join(addresses))
        meeting = _host(world, store, 0, addresses[0], publication, deadline)
        return replace(meeting, file=path)
    try:
        store.wait(["addresses"], timedelta(seconds=max(1.0, deadline - time.monotonic())))
    except RuntimeError as error:
        raise _no_publication(world, path) from error
    addresses = store.get("addresses").decode().split()
    address, own = _route(addresses)
    route = arrive(store, world, deadline, address, "its host")
    _use_interface_of(route if own.startswith("127.") else own)
    return Meeting(store, replace(world, master_addr=route, master_port=0))


def _remove_others(path: Path) -> None:
    """What killed starts left."""
    for other in path.parent.glob(f"*{path.suffix}"):
        if other != path:
            other.unlink(missing_ok=True)


def _route(addresses: list[str]) -> tuple[str, str]:
    """The first address to which this host knows a way, and its own on that way. Sends nothing."""
    for address in addresses:
        with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((address, _DISCARD))
            return address, str(probe.getsockname()[0])
    return _LOOPBACK, _LOOPBACK


# -- finding rank 0


def _await_publication(world: World, publication: Path, deadline: float) -> Place:
    while True:
        # Listing the folder makes a network file system look again instead of using its cache.
        with suppress(OSError):
            os.listdir(publication.parent)
        place = read_json(publication)
        if place is not None:
            return cast(Place, place)
        if time.monotonic() > deadline:
            raise _no_publication(world, publication)
        time.sleep(_POLL_S)


def _no_publication(world: World, publication: Path) -> RendezvousError:
    return RendezvousError(
        f"rank {world.rank} on {socket.gethostname()} found no {publication}: rank 0 did not "
        "start, or this host does not share the run folder with it"
    )


def _reach(world: World, place: Place, deadline: float, notes: Path) -> tuple[str, str]:
    """The first of rank 0's addresses that answers, and the own address on that route."""
    has_noted = False
    while True:
        for address in place["addresses"]:
            with suppress(OSError), socket.create_connection((address, place["port"]), _CONNECT_S) as link:
                return str(link.getpeername()[0]), str(link.getsockname()[0])
        if not has_noted:
            notes.parent.mkdir(parents=True, exist_ok=True)
            append_json_line(notes, {"rank": world.rank, "host": socket.gethostname()})
            has_noted = True
        if time.monotonic() > deadline:
            raise RendezvousError(
                f"host {socket.gethostname()} (rank {world.rank}) cannot reach rank 0 on host "
                f"{place['host']} at {', '.join(place['addresses'])} port {place['port']}: check the "
                "network or firewall between these hosts"
            )
        time.sleep(_POLL_S)


def _own_addresses(world: World) -> list[str]:
    """Where other ranks may reach this host, the likeliest first."""
    if world.nodes == 1:
        return [_LOOPBACK]
    named: list[str] = []
    with suppress(OSError):
        infos = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET, socket.SOCK_STREAM)
        named = [str(info[4][0]) for info in infos]
    every = [
        entry.address
        for entries in psutil.net_if_addrs().values()
        for entry in entries
        if entry.family == socket.AF_INET
    ]
    return [address for address in dict.fromkeys(named + every) if not address.startswith("127.")]


def _use_interface_of(address: str) -> None:
    """Tell gloo the interface that really leads to the others, unless the user has.

    By itself gloo takes the address of the host name, which on many machines is 127.0.1.1.
    """
    if "GLOO_SOCKET_IFNAME" in os.environ:
        return
    for name, entries in psutil.net_if_addrs().items():
        if any(entry.address == address for entry in entries):
            os.environ["GLOO_SOCKET_IFNAME"] = name
            return
