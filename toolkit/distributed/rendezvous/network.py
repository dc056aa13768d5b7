"""Rendezvous over the network: rank 0 listens, the others find it, and both sides prove the secret."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from toolkit.distributed.rendezvous.check_in import RefusalWatch, check_in, wait_for_ranks
from toolkit.distributed.rendezvous.result import JoiningRank, Place, Rendezvous
from toolkit.distributed.secure.addresses import use_interface_of
from toolkit.distributed.secure.channel import Channel, Lost, NotAuthenticated, authenticate_to_server
from toolkit.distributed.secure.listener import SecureListener, listen
from toolkit.distributed.secure.refusals import Refusals
from toolkit.distributed.secure.secret import HOW_TO_GIVE
from toolkit.distributed.secure.store import AuthenticatedStore
from toolkit.distributed.secure.store_server import StoreClient, StoreServer
from toolkit.errors import RendezvousError, UserError
from toolkit.files import append_json_line, read_json, write_json
from toolkit.run.attempts.refusal import forget_refusal, write_refusal
from toolkit.run.events import note_event
from toolkit.system.world import World

_POLL_S = 0.02
_CONNECT_S, _PROOF_S = 2.0, 5.0
#: Seconds between two attempts if a process other than rank 0 answers.
_POLL_UNPROVEN_S = 0.2


def host(
    joining: JoiningRank,
    addresses: Sequence[str],
    port: int = 0,
    publish: Callable[[Place], None] = lambda place: None,
    cure: str = "",
) -> Rendezvous:
    """On rank 0: open the store at these addresses, publish its place, and wait for the other ranks.

    cure   advice if rank 0 cannot listen there
    """
    if joining.may_repeat:
        forget_refusal(joining.run, joining.world.nonce)
    server, refusals = StoreServer(), Refusals(partial(note_event, joining.run))
    listener = SecureListener(_listen(joining, addresses, port, cure), joining.secret, server.serve, refusals)
    store = AuthenticatedStore(lambda: server.answer)
    try:
        publish(Place(host=socket.gethostname(), addresses=list(addresses), port=listener.port))
        address = wait_for_ranks(store, joining, addresses[0], refusals)
    except BaseException:
        # The listener stays open until this process ends, so that later ranks get the same error.
        refusals.close()
        raise
    listener.slow_down()
    use_interface_of(address)

    def finish() -> None:
        listener.close()
        joining.run.secret(joining.world.nonce).unlink(missing_ok=True)

    world = replace(joining.world, master_addr=address, master_port=listener.port)
    return Rendezvous(store, world, joining.secret, finish)


def _listen(joining: JoiningRank, addresses: Sequence[str], port: int, cure: str) -> list[socket.socket]:
    try:
        return listen(addresses, port)
    except OSError as error:
        why = (
            f"rank 0 on {socket.gethostname()} cannot listen at {', '.join(addresses)} port {port}: "
            f"{os.strerror(error.errno or 0)}. {cure}"
        ).rstrip()
        write_refusal(joining.run, joining.world.nonce, why)
        raise UserError(why) from None


def publish(publication: Path, place: Place) -> None:
    """Write rank 0's address into the run's folder, for the other ranks."""
    publication.parent.mkdir(parents=True, exist_ok=True)
    write_json(publication, place)


def join(joining: JoiningRank, find: Callable[[], Place | None]) -> Rendezvous:
    """On another rank: find rank 0's store and wait until all ranks have joined."""
    found = _Seeker(joining, find).seek()
    store = AuthenticatedStore(lambda: StoreClient(found.connect))
    route = check_in(store, joining, found.address, found.place["host"])
    use_interface_of(route if found.own_address.startswith("127.") else found.own_address)
    world = replace(joining.world, master_addr=route, master_port=found.place["port"])
    return Rendezvous(store, world, joining.secret)


@dataclass(slots=True, kw_only=True)
class _Found:
    """The place of rank 0, and the first connection to it until that is used.

    address, own_address  the two ends of the connection
    """

    place: Place
    address: str
    own_address: str
    secret: bytes = field(repr=False)
    channel: Channel | None

    def connect(self) -> Channel:
        """Return a connection to rank 0. Raises Lost."""
        channel, self.channel = self.channel, None
        return channel or _connect(self.address, self.place["port"], self.secret)[0]


def _connect(address: str, port: int, secret: bytes) -> tuple[Channel, str, str]:
    """Return an authenticated connection and the addresses of its ends. Raises Lost, NotAuthenticated."""
    try:
        link = socket.create_connection((address, port), _CONNECT_S)
    except OSError as error:
        raise Lost(str(error)) from error
    try:
        ends = str(link.getpeername()[0]), str(link.getsockname()[0])
        return authenticate_to_server(link, secret, _PROOF_S), *ends
    except Lost as error:
        link.close()
        if isinstance(error, NotAuthenticated):
            raise
        raise NotAuthenticated(f"its answer is not that of rank 0 ({error})") from error
    except BaseException:
        link.close()
        raise


@dataclass(slots=True)
class _Seeker:
    """Looks for rank 0 until it is found or the deadline has passed."""

    joining: JoiningRank
    find: Callable[[], Place | None]
    has_noted: bool = False
    unproven: str = ""

    def seek(self) -> _Found:
        """Return rank 0 once it answers and has proved the secret. Raises RendezvousError, UserError."""
        refusal = RefusalWatch(self.joining)
        while True:
            place = self.find()
            if place is not None:
                for address in place["addresses"]:
                    with suppress(Lost):
                        return self._try(place, address)
                self._note()
            # If the attempt's name may repeat, a refusal may be old, unless a stranger has the port.
            if (self.unproven or not self.joining.may_repeat) and (reason := refusal.ask()) is not None:
                raise UserError(reason)
            if time.monotonic() > self.joining.deadline:
                raise self._failed(place)
            time.sleep(_POLL_UNPROVEN_S if self.unproven else _POLL_S)

    def _try(self, place: Place, address: str) -> _Found:
        secret = self.joining.secret
        try:
            channel, peer, own = _connect(address, place["port"], secret)
        except NotAuthenticated as error:
            self.unproven = str(error)
            raise
        return _Found(place=place, address=peer, own_address=own, secret=secret, channel=channel)

    def _note(self) -> None:
        if self.unproven or self.has_noted:
            return
        self.has_noted = True
        notes = self.joining.unreached
        notes.parent.mkdir(parents=True, exist_ok=True)
        append_json_line(notes, {"rank": self.joining.world.rank, "host": socket.gethostname()})

    def _failed(self, place: Place | None) -> RendezvousError:
        world = self.joining.world
        if place is None:
            return no_publication(world, self.joining.publication)
        where = f"host {place['host']} at {', '.join(place['addresses'])} port {place['port']}"
        who = f"host {socket.gethostname()} (rank {world.rank})"
        if self.unproven:
            return RendezvousError(
                f"{who} found no rank 0 that shares its secret on {where}: {self.unproven}. Another "
                f"program listens there, or these hosts do not share the run folder. {HOW_TO_GIVE}."
            )
        return RendezvousError(
            f"{who} cannot reach rank 0 on {where}: check the network or firewall between these hosts"
        )


def find_published(publication: Path) -> Place | None:
    """Read the place of rank 0 from the run's folder; None if it does not exist yet or cannot be read."""
    # Listing the folder makes a network file system refresh its cache.
    with suppress(OSError):
        os.listdir(publication.parent)
    with suppress(OSError, ValueError, RecursionError):
        return understood(read_json(publication))
    return None


def understood(place: Any) -> Place | None:
    """Return the value if it is a valid place, else None."""
    match place:
        case {"host": str(host), "addresses": [*addresses], "port": int(port)} if 0 < port < 1 << 16:
            return Place(host=host, addresses=[str(address) for address in addresses], port=port)
    return None


def no_publication(world: World, publication: Path) -> RendezvousError:
    """The error of a rank that finds no address of rank 0."""
    without = f". Without a common folder: {HOW_TO_GIVE}" if world.master_addr is not None else ""
    return RendezvousError(
        f"rank {world.rank} on {socket.gethostname()} found no {publication}: rank 0 did not start, or this "
        f"host does not share the run folder with it{without}"
    )
