"""Check-in at a store: every rank announces itself; rank 0 waits for all of them, then lets them continue.

Ranks with different world sizes or the same number are reported at once, missing ranks after the timeout.
"""

from __future__ import annotations

import json
import socket
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypedDict

from torch.distributed import Store  # type: ignore[attr-defined]  # not in __all__

from toolkit.distributed.rendezvous.result import JoiningRank
from toolkit.distributed.secure.refusals import Refusals
from toolkit.errors import RendezvousError, UserError
from toolkit.files import read_json_lines
from toolkit.run.attempts.refusal import read_refusal

_POLL_S = 0.02
#: Extra seconds: rank 0 may have started to wait later, and only it knows which ranks are missing.
_LATER_S = 1.0
#: Seconds between two checks whether a process has reported that it cannot take part.
_CHECK_EVERY_S = 0.3


class Arrival(TypedDict):
    """The announcement of a rank.

    route  the address at which the rank reaches rank 0
    """

    rank: int
    size: int
    host: str
    route: str


def _key(rank: int) -> str:
    return f"joined/{rank}"


def _read(store: Store, rank: int) -> Arrival:
    arrival: Arrival = json.loads(store.get(_key(rank)))
    return arrival


def wait_for_ranks(
    store: Store, joining: JoiningRank, own_route: str, refusals: Refusals | None = None
) -> str:
    """On rank 0: wait for all others; return the address at which they reach this rank.

    refusals  the refused connections, for a message
    Raises RendezvousError, UserError; the ranks that have checked in get the same error.
    """
    try:
        routes = _await(store, joining, refusals)
    except (RendezvousError, UserError) as error:
        store.set("go", json.dumps({"error": str(error), "is_input": isinstance(error, UserError)}))
        raise
    # Ranks on the same host may use the loopback address, which others cannot reach.
    far = [route for route in routes if not route.startswith("127.")]
    route = [*far, *routes, own_route][0]
    store.set("go", json.dumps({"route": route}))
    return route


def _await(store: Store, joining: JoiningRank, refusals: Refusals | None) -> list[str]:
    world, host, refusal = joining.world, socket.gethostname(), RefusalWatch(joining)
    missing, routes = set(range(1, world.size)), {}
    while missing:
        for rank in [rank for rank in sorted(missing) if store.check([_key(rank)])]:
            other = _read(store, rank)
            if other["size"] != world.size:
                raise UserError(
                    f"the ranks contradict each other: rank {rank} on {other['host']} has a world of "
                    f"{other['size']} ranks, rank {world.rank} on {host} of {world.size}"
                )
            routes[rank] = other["route"]
            missing.remove(rank)
        if store.check(["taken"]):
            raise UserError(store.get("taken").decode())
        if missing and (reason := refusal.ask()) is not None:
            raise UserError(reason)
        if missing and time.monotonic() > joining.deadline:
            raise RendezvousError(
                f"{len(missing)} of {world.size} ranks did not arrive at rank 0 on {host}: "
                f"{_listed(missing, joining, refusals)}. Their logs say why; "
                "train.rendezvous_timeout_s sets how long to wait."
            )
        time.sleep(_POLL_S)
    return [routes[rank] for rank in sorted(routes)]


def _listed(missing: set[int], joining: JoiningRank, refusals: Refusals | None) -> str:
    """List the missing ranks, those that could not reach rank 0, and the refused connections."""
    hosts = {note["rank"]: note["host"] for note in read_json_lines(joining.unreached)}
    listed = ", ".join(
        f"rank {rank}" + (f" (host {hosts[rank]} cannot reach it)" if rank in hosts else "")
        for rank in sorted(missing)
    )
    if refusals is None or not refusals.count:
        return listed
    return f"{listed} (refused, because they do not know the secret of this attempt: {refusals})"


@dataclass(slots=True)
class RefusalWatch:
    """Checks from time to time whether a process of this attempt has reported that it cannot take part."""

    joining: JoiningRank
    next_time: float = 0.0

    def ask(self) -> str | None:
        """Return the message of such a process; None without one, or if it is too early to check again."""
        if time.monotonic() < self.next_time:
            return None
        self.next_time = time.monotonic() + _CHECK_EVERY_S
        return read_refusal(self.joining.run, self.joining.world.nonce)


def check_in(store: Store, joining: JoiningRank, route: str, rank_0: str) -> str:
    """On another rank: announce this rank and wait for all; return the address of rank 0.

    rank_0  the host of rank 0, for messages
    Raises RendezvousError, UserError.
    """
    world, host = joining.world, socket.gethostname()
    if store.add(f"claimed/{world.rank}", 1) > 1:
        raise _taken(store, joining)
    own = Arrival(rank=world.rank, size=world.size, host=host, route=route)
    store.set(_key(world.rank), json.dumps(own))
    late = f"rank {world.rank} on {host} joined rank 0 on {rank_0}, but not all ranks arrived"
    try:
        store.wait(["go"], timedelta(seconds=max(1.0, joining.deadline + _LATER_S - time.monotonic())))
        answer: dict[str, Any] = json.loads(store.get("go"))
    except RuntimeError as error:
        raise RendezvousError(f"{late} in time; rank 0's log names the missing ones") from error
    if answer.get("is_input"):
        raise UserError(answer["error"])
    if "error" in answer:
        raise RendezvousError(f"{late}: {answer['error']}")
    return str(answer["route"])


def _taken(store: Store, joining: JoiningRank) -> UserError:
    """Report two processes with the same rank to rank 0, as the second of them; return the error."""
    rank, host = joining.world.rank, "another host"
    try:
        store.wait([_key(rank)], joining.remaining)
        host = _read(store, rank)["host"]
    except RuntimeError:
        # The other process claimed the rank and died.
        pass
    error = UserError(f"two processes have the rank {rank}: one on {host}, one on {socket.gethostname()}")
    store.set("taken", str(error))
    return error
