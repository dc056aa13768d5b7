"""Several machines without a scheduler: their processes, the number of this machine, and node 0's address.

Ranks are numbered in the order of the machines: the first rank of each is the sum of the counts before it, so
that every machine computes the same world from the same counts.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolkit.config.sections import with_hint
from toolkit.errors import UserError
from toolkit.launch.machines.host_names import is_local_name, is_same_host

#: Default port of node 0, the same as torchrun's.
DEFAULT_PORT = 29500


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """The machines of a run, as the arguments of `stk run` on this machine describe them.

    counts       processes of each machine
    node         the number of this machine
    names        names of all machines if known; for messages
    master_addr  host name or address of node 0; None if this is node 0 and it was not given
    master_port  port on node 0 to which the others connect
    """

    counts: tuple[int, ...]
    node: int
    names: tuple[str, ...] = ()
    master_addr: str | None = None
    master_port: int = DEFAULT_PORT

    def __post_init__(self) -> None:
        if not self.counts or min(self.counts) < 1:
            listed = ", ".join(map(str, self.counts)) or "none"
            raise UserError(f"processes per machine: {listed}; each machine needs at least 1")
        if not 0 <= self.node < len(self.counts):
            raise UserError(
                f"this machine is node {self.node}, but there are {len(self.counts)} machines: "
                f"expected a number from 0 to {len(self.counts) - 1}"
            )
        if self.node > 0 and self.master_addr is None:
            raise UserError(f"node {self.node} needs the name or address of node 0: give it as --master-addr")
        if not 1 <= self.master_port <= 65535:
            raise UserError(f"the port is {self.master_port}, expected a number from 1 to 65535")

    @classmethod
    def alone(cls, procs: int) -> Machines:
        """Only this machine, with this number of processes."""
        return cls(counts=(procs,), node=0)

    @property
    def count(self) -> int:
        """Processes on this machine."""
        return self.counts[self.node]

    @property
    def size(self) -> int:
        """Processes on all machines."""
        return sum(self.counts)

    @property
    def own_ranks(self) -> range:
        """The ranks of this machine."""
        return self.ranks(self.node)

    def ranks(self, node: int) -> range:
        """The ranks of one machine."""
        first = sum(self.counts[:node])
        return range(first, first + self.counts[node])

    def describe(self, node: int) -> str:
        """Describe a machine for messages: its number, its name if known, its ranks."""
        ranks = self.ranks(node)
        which = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]} to {ranks[-1]}"
        return f"node {node} ({', '.join([*self.names[node : node + 1], which])})"


def own_names() -> tuple[str, ...]:
    """The names and addresses of this machine, without a query to a name server."""
    import psutil  # slow to import, and only needed if hosts are named

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
    """The number of this machine among the hosts, or None. Raises UserError if it is named twice."""
    found = [
        number
        for number, host in enumerate(hosts)
        if is_local_name(host) or any(is_same_host(host, name) for name in own)
    ]
    if len(found) > 1:
        names = " and ".join(hosts[number] for number in found)
        text = f"the map of hosts names this machine more than once: {names}; keep one of them."
        raise UserError(with_hint(text, "hosts"))
    return found[0] if found else None


def machines_of_hosts(
    hosts: Mapping[str, int],
    own: Sequence[str],
    *,
    own_count: int = 1,
    node: int | None = None,
    master_addr: str | None = None,
    master_port: int = DEFAULT_PORT,
) -> Machines:
    """The machines of a map from hosts to GPUs, in its order. A host without GPUs runs one process.

    If the map does not name this machine, it is node `node`, or node 0, with own_count processes. Raises
    UserError if `node` differs from the map.
    """
    names, counts = [*hosts], [max(1, gpus) for gpus in hosts.values()]
    found = own_node(names, own)
    if found is None:
        found = min(max(0, node or 0), len(names))
        names.insert(found, own[0])
        counts.insert(found, own_count)
    if node is not None and node != found:
        what = f"--node-rank is {node}, but in the map of hosts this machine is node {found}"
        raise UserError(with_hint(f"{what}: {', '.join(names)}.", "hosts"))
    if found > 0 and master_addr is None:
        master_addr = names[0]
    return Machines(
        counts=tuple(counts), node=found, names=tuple(names), master_addr=master_addr, master_port=master_port
    )
