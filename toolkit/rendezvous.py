"""Rendezvous by publication: rank 0 opens a store on a free port and says where, in the run folder.

No port is agreed on beforehand, so two jobs on one host cannot collide; the file is named by this
very start, so a stale one is never joined. Every rank first proves that it reaches rank 0, so that a
network fault is named within seconds.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TypedDict, cast

import psutil
from torch.distributed import TCPStore  # type: ignore[attr-defined]  # public, but not in __all__

from toolkit.errors import RendezvousError
from toolkit.files import append_json_line, read_json, read_json_lines, write_json
from toolkit.world import World

_POLL_S = 0.02
_CONNECT_S = 2.0
_LOOPBACK = "127.0.0.1"


class Place(TypedDict):
    """Where rank 0 published that its store is."""

    host: str
    addresses: list[str]
    port: int


@dataclass(frozen=True, slots=True)
class Meeting:
    """An open store that all ranks have joined, and the world with rank 0's address in it."""

    store: TCPStore
    world: World


def meet(world: World, publication: Path, timeout_s: float) -> Meeting:
    """Open or join the store of this start. Collective: every rank of the world must call it.

    Raises RendezvousError, which names the ranks that are missing (on rank 0) or the host that
    cannot reach rank 0 (on the others), after timeout_s seconds.
    """
    deadline = time.monotonic() + timeout_s
    if world.is_main:
        return _host(world, publication, deadline)
    return _join(world, publication, deadline)


def _host(world: World, publication: Path, deadline: float) -> Meeting:
    store = TCPStore("0.0.0.0", 0, world.size, is_master=True, wait_for_workers=False)
    addresses = _own_addresses(world)
    publication.parent.mkdir(parents=True, exist_ok=True)
    write_json(publication, {"host": socket.gethostname(), "addresses": addresses, "port": store.port})
    missing = set(range(1, world.size))
    while missing:
        missing = {rank for rank in missing if not store.check([f"joined/{rank}"])}
        if missing and time.monotonic() > deadline:
            raise RendezvousError(_absentees(missing, world, publication))
        time.sleep(_POLL_S)
    routes = [store.get(f"joined/{rank}").decode() for rank in range(1, world.size)]
    address = routes[0] if routes else addresses[0]
    _use_interface_of(address)
    store.set("go", address)
    return Meeting(store, replace(world, master_addr=address, master_port=store.port))


def _absentees(missing: set[int], world: World, publication: Path) -> str:
    hosts = {note["rank"]: note["host"] for note in read_json_lines(_notes(publication))}
    ranks = ", ".join(
        f"rank {rank}" + (f" (host {hosts[rank]} cannot reach it)" if rank in hosts else "")
        for rank in sorted(missing)
    )
    return (
        f"{len(missing)} of {world.size} ranks did not arrive at rank 0 on {socket.gethostname()}: {ranks}. "
        "Their logs say why; train.rendezvous_timeout_s sets how long to wait."
    )


def _notes(publication: Path) -> Path:
    """Who could not reach rank 0: left in the run folder, because the network is what fails them."""
    return publication.with_name(publication.name + ".unreached")


def _join(world: World, publication: Path, deadline: float) -> Meeting:
    place = _await_publication(world, publication, deadline)
    address, own = _reach(world, place, deadline, _notes(publication))
    _use_interface_of(own)
    remaining = timedelta(seconds=max(1.0, deadline - time.monotonic()))
    store = TCPStore(address, place["port"], world.size, is_master=False, timeout=remaining)
    store.set(f"joined/{world.rank}", address)
    try:
        store.wait(["go"], remaining)
    except RuntimeError as error:
        raise RendezvousError(
            f"rank {world.rank} on {socket.gethostname()} joined rank 0 on {place['host']}, "
            "but not all ranks arrived in time; rank 0's log names them"
        ) from error
    return Meeting(store, replace(world, master_addr=address, master_port=place["port"]))


def _await_publication(world: World, publication: Path, deadline: float) -> Place:
    while True:
        # Listing the folder makes a network file system look again instead of using its cache.
        with suppress(OSError):
            os.listdir(publication.parent)
        place = read_json(publication)
        if place is not None:
            return cast(Place, place)
        if time.monotonic() > deadline:
            raise RendezvousError(
                f"rank {world.rank} on {socket.gethostname()} found no {publication}: rank 0 did not "
                "start, or this host does not share the run folder with it"
            )
        time.sleep(_POLL_S)


def _reach(world: World, place: Place, deadline: float, notes: Path) -> tuple[str, str]:
    """The first of rank 0's addresses that answers, and the own address on that route."""
    has_noted = False
    while True:
        for address in place["addresses"]:
            with suppress(OSError), socket.create_connection((address, place["port"]), _CONNECT_S) as link:
                return address, link.getsockname()[0]
        if not has_noted:
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
