"""Check-in at a store: every rank announces itself; rank 0 waits for all of them, then lets them continue.

Ranks with different world sizes or the same number are reported at once, missing ranks after the timeout.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from toolkit.errors import RendezvousError, UserError
from toolkit.system.world import World

_POLL_S = 0.02
#: Extra seconds: rank 0 may have started to wait later, and only it knows which ranks are missing.
_LATER_S = 1.0


class Store(Protocol):
    """The part of torch's stores that is used here."""

    def set(self, key: str, value: str, /) -> None: ...
    def get(self, key: str, /) -> bytes: ...
    def add(self, key: str, amount: int, /) -> int: ...
    def check(self, keys: list[str], /) -> bool: ...
    def wait(self, keys: list[str], timeout: timedelta, /) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """The announcement of a rank.

    route  the address at which the rank reaches rank 0
    """

    rank: int
    size: int
    host: str
    route: str

    @classmethod
    def of(cls, world: World, route: str) -> Arrival:
        return cls(rank=world.rank, size=world.size, host=socket.gethostname(), route=route)

    @classmethod
    def read(cls, store: Store, rank: int) -> Arrival:
        return cls(**json.loads(store.get(_key(rank))))

    def write(self) -> str:
        return json.dumps({"rank": self.rank, "size": self.size, "host": self.host, "route": self.route})


def _key(rank: int) -> str:
    return f"joined/{rank}"


def wait_for_ranks(
    store: Store,
    world: World,
    deadline: float,
    own_route: str,
    where_are: Callable[[set[int]], str],
    refused: Callable[[], str | None],
) -> str:
    """On rank 0: wait for all others; return the address at which they reach this rank.

    where_are  describes missing ranks for a message
    refused    returns the message of a process that cannot take part; None without one
    Raises RendezvousError, UserError; the ranks that have checked in get the same error.
    """
    own = Arrival.of(world, own_route)
    try:
        routes = _await(store, own, deadline, where_are, refused)
    except (RendezvousError, UserError) as error:
        store.set("go", json.dumps({"error": str(error), "is_input": isinstance(error, UserError)}))
        raise
    # Ranks on the same host may use the loopback address, which others cannot reach.
    far = [route for route in routes if not route.startswith("127.")]
    route = [*far, *routes, own_route][0]
    store.set("go", json.dumps({"route": route}))
    return route


def _await(
    store: Store,
    own: Arrival,
    deadline: float,
    where_are: Callable[[set[int]], str],
    refused: Callable[[], str | None],
) -> list[str]:
    missing, routes = set(range(1, own.size)), {}
    while missing:
        for rank in [rank for rank in sorted(missing) if store.check([_key(rank)])]:
            routes[rank] = _with_same_size(own, Arrival.read(store, rank)).route
            missing.remove(rank)
        if store.check(["taken"]):
            raise UserError(store.get("taken").decode())
        if missing and (reason := refused()) is not None:
            raise UserError(reason)
        if missing and time.monotonic() > deadline:
            raise RendezvousError(
                f"{len(missing)} of {own.size} ranks did not arrive at rank 0 on {own.host}: "
                f"{where_are(missing)}. Their logs say why; train.rendezvous_timeout_s sets how long to wait."
            )
        time.sleep(_POLL_S)
    return [routes[rank] for rank in sorted(routes)]


def _with_same_size(own: Arrival, other: Arrival) -> Arrival:
    if other.size != own.size:
        raise UserError(
            f"the ranks contradict each other: rank {other.rank} on {other.host} has a world of "
            f"{other.size} ranks, rank {own.rank} on {own.host} of {own.size}"
        )
    return other


def check_in(store: Store, world: World, deadline: float, route: str, rank_0: str) -> str:
    """On another rank: announce this rank and wait for all; return the address of rank 0.

    rank_0  the host of rank 0, for messages
    Raises RendezvousError, UserError.
    """
    own = Arrival.of(world, route)
    if store.add(f"claimed/{world.rank}", 1) > 1:
        raise _taken(store, own, deadline)
    store.set(_key(world.rank), own.write())
    late = f"rank {own.rank} on {own.host} joined rank 0 on {rank_0}, but not all ranks arrived"
    try:
        store.wait(["go"], timedelta(seconds=max(1.0, deadline + _LATER_S - time.monotonic())))
        answer: dict[str, Any] = json.loads(store.get("go"))
    except RuntimeError as error:
        raise RendezvousError(f"{late} in time; rank 0's log names the missing ones") from error
    if answer.get("is_input"):
        raise UserError(answer["error"])
    if "error" in answer:
        raise RendezvousError(f"{late}: {answer['error']}")
    return str(answer["route"])


def _taken(store: Store, own: Arrival, deadline: float) -> UserError:
    """Report two processes with the same rank to rank 0, as the second of them; return the error."""
    host = "another host"
    try:
        store.wait([_key(own.rank)], timedelta(seconds=max(1.0, deadline - time.monotonic())))
        host = Arrival.read(store, own.rank).host
    except RuntimeError:
        # The other process claimed the rank and died.
        pass
    error = UserError(f"two processes have the rank {own.rank}: one on {host}, one on {own.host}")
    store.set("taken", str(error))
    return error
