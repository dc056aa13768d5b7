"""Number of processes and hosts that resources ask for."""

from __future__ import annotations

from dataclasses import replace

from slurm.config.resources import Resources

#: What decides how many processes there are.
PROCESS_KEYS = tuple(
    ("resources", name) for name in ("world_size", "hosts", "groups", "nodes", "tasks_per_node")
)


def world_size(resources: Resources) -> int:
    """Most processes that the resources ask for: one per GPU in groups and hosts, at least one per host."""
    if resources.hosts:
        return sum(max(gpus, 1) for gpus in resources.hosts.values())
    if resources.groups:
        return sum(group.nodes * max(group.gpus, 1) for group in resources.groups)
    return node_range(resources.nodes)[1] * resources.tasks_per_node


def smallest_world(resources: Resources) -> int:
    """Fewest processes that the resources may give: those of the fewest hosts of a range."""
    if resources.hosts or resources.groups:
        return world_size(resources)
    return node_range(resources.nodes)[0] * resources.tasks_per_node


def node_range(nodes: int | str) -> tuple[int, int]:
    """Fewest and most hosts."""
    least, _, most = str(nodes).partition("-")
    return int(least), int(most or least)


def spread_world_size(resources: Resources) -> Resources:
    """Spread a world size over hosts: nodes, or else tasks_per_node, become what it makes of them.

    Left as they are where both are given, or where it cannot be spread evenly: a rule finds that.
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
