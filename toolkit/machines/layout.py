"""Machines that are joined by hand: the processes of each, which of them this one is, where they meet.

The ranks of one machine follow one another, in the order of the machines: the first rank of each is the
sum of the counts before it, so that every machine computes the same world from the same counts.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from toolkit.config.hosts import is_local_name, is_same_host
from toolkit.errors import UserError

#: Where the machines meet unless told: the port that torchrun takes, too.
DEFAULT_PORT = 29500


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The ranks of a world over its machines: machine i has counts[i] of them, from first_ranks[i] on."""

    counts: tuple[int, ...]
    first_ranks: tuple[int, ...]
    size: int

    def ranks(self, node: int) -> range:
        """The ranks of one machine."""
        return range(self.first_ranks[node], self.first_ranks[node] + self.counts[node])


def layout(counts: Iterable[int]) -> Layout:
    """The ranks of machines with so many processes each. Raises UserError where one has none."""
    counts = tuple(counts)
    if not counts or min(counts) < 1:
        raise UserError(
            f"found the processes {_listed(counts) or 'of no machine'}: each machine needs at least 1"
        )
    *first_ranks, size = accumulate(counts, initial=0)
    return Layout(counts=counts, first_ranks=tuple(first_ranks), size=size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """The machines of a run, as this one was told.

    node         the number of this machine
    names        of all machines, where they are known; for messages
    master_addr  host name or address of machine 0; None where this is it and nobody said
    master_port  the port there on which the machines meet
    """

    layout: Layout
    node: int
    names: tuple[str, ...] = ()
    master_addr: str | None = None
    master_port: int = DEFAULT_PORT

    def __post_init__(self) -> None:
        if not 0 <= self.node < len(self.layout.counts):
            raise UserError(
                f"this machine is node {self.node}, but there are {len(self.layout.counts)} machines: "
                f"expected a number from 0 to {len(self.layout.counts) - 1}"
            )
        if self.node > 0 and self.master_addr is None:
            raise UserError(
                f"node {self.node} must be told where node 0 is: give its name or address as --master-addr"
            )
        if not 1 <= self.master_port <= 65535:
            raise UserError(f"the port is {self.master_port}, expected a number from 1 to 65535")

    @classmethod
    def alone(cls, procs: int) -> Machines:
        """This machine with so many processes, and no other."""
        return cls(layout=layout([procs]), node=0)

    @property
    def count(self) -> int:
        """Processes on this machine."""
        return self.layout.counts[self.node]

    def tell(self, node: int) -> str:
        """A machine for messages: its number, its name where it is known, its ranks."""
        ranks = self.layout.ranks(node)
        which = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]} to {ranks[-1]}"
        return f"node {node} ({', '.join([*self.names[node : node + 1], which])})"


def own_names() -> tuple[str, ...]:
    """The names and addresses of this machine, without asking any other."""
    import psutil  # slow, and only wanted where hosts are named

    name = socket.gethostname()
    families = (socket.AF_INET, socket.AF_INET6)
    addresses = [
        entry.address.partition("%")[0]
        for entries in psutil.net_if_addrs().values()
        for entry in entries
        if entry.family in families
    ]
    return (name, *addresses)


def own_node(hosts: Sequence[str], own: Sequence[str]) -> int | None:
    """Which of these hosts is this machine; None where it is none. Raises UserError where two are."""
    found = [number for number, host in enumerate(hosts) if _is_own(host, own)]
    if len(found) > 1:
        names = " and ".join(hosts[number] for number in found)
        raise UserError(f"resources.hosts names this machine more than once: {names}; keep one of them")
    return found[0] if found else None


def _is_own(host: str, own: Sequence[str]) -> bool:
    return is_local_name(host) or any(is_same_host(host, name) for name in own)


def machines_of_hosts(
    hosts: Mapping[str, int],
    own: Sequence[str],
    *,
    own_count: int = 1,
    node: int | None = None,
    master_addr: str | None = None,
    master_port: int = DEFAULT_PORT,
) -> Machines:
    """The machines of a map from hosts to GPUs, in its order; one that has none runs one process.

    This machine may be left out: then it has own_count processes and is the one that `node` says, or the
    first. Raises UserError where `node` contradicts the map.
    """
    names, counts = [*hosts], [max(1, gpus) for gpus in hosts.values()]
    found = own_node(names, own)
    if found is None:
        found = min(max(0, node or 0), len(names))
        names.insert(found, own[0])
        counts.insert(found, own_count)
    if node is not None and node != found:
        raise UserError(
            f"--node-rank is {node}, but in resources.hosts this machine is node {found}: {_listed(names)}"
        )
    if found > 0 and master_addr is None:
        master_addr = names[0]
    return Machines(
        layout=layout(counts),
        node=found,
        names=tuple(names),
        master_addr=master_addr,
        master_port=master_port,
    )


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))
