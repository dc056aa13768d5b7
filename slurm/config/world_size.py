"""The number of processes and hosts that resources request."""

from __future__ import annotations

from dataclasses import replace

from slurm.config.resources import Resources

#: The keys that set the number of processes.
PROCESS_KEYS = tuple(
    ("resources", name) for name in ("world_size", "hosts", "groups", "nodes", "tasks_per_node")
)


def world_size(resources: Resources) -> int:
    """Return the largest number of processes: one per GPU in groups and hosts, at least one per host."""
    if resources.hosts:
        return sum(max(gpus, 1) for gpus in resources.hosts.values())
    if resources.groups:
        return sum(group.nodes * max(group.gpus, 1) for group in resources.groups)
    return node_range(resources.nodes)[1] * resources.tasks_per_node


def smallest_world(resources: Resources) -> int:
    """Return the smallest number of processes: with a range of hosts, that of the fewest hosts."""
    if resources.hosts or resources.groups:
        return world_size(resources)
    return node_range(resources.nodes)[0] * resources.tasks_per_node


def node_range(nodes: int | str) -> tuple[int, int]:
    """Return the fewest and the most hosts."""
    least, _, most = str(nodes).partition("-")
    return int(least), int(most or least)


def spread_world_size(resources: Resources) -> Resources:
    """Spread a world size over hosts: set tasks_per_node if nodes are given, else nodes from tasks_per_node.

    Unchanged if both are given or the size cannot be spread evenly: a rule reports that. Alone: one host.
    """
    size, tasks = resources.world_size, resources.tasks_per_node
    least, most = node_range(resources.nodes)
    if size is None or resources.hosts or resources.groups or least != most:
        return resources
    if most > 1 and tasks == 1 and size % most == 0:
        return replace(resources, tasks_per_node=size // most)
    if most == 1 and tasks > 1 and size % tasks == 0:
        return replace(resources, nodes=size // tasks)
    return replace(resources, tasks_per_node=size) if most == tasks == 1 else resources
