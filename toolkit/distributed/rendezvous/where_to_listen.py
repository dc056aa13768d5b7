"""The interface on which rank 0 listens: the one that the other hosts use; all, if that is unknown."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.distributed.rendezvous.result import JoiningRank
from toolkit.distributed.secure.addresses import known_addresses, own_addresses
from toolkit.run.events import note_event

#: The event that rank 0 listens on several interfaces until all ranks have joined.
EVENT = "listens_on_every_address"


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
