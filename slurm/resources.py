"""Resources -> sbatch's options: one component, or several for uneven hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolkit.config.schema import Group, Resources

#: Fields that sbatch knows by the same name, with dashes.
_SAME_NAME = (
    "gres",
    "gpus_per_node",
    "gpus_per_task",
    "cpus_per_task",
    "mem",
    "mem_per_cpu",
    "mem_per_gpu",
    "time",
    "partition",
    "account",
    "qos",
    "constraint",
    "nodelist",
    "exclude",
    "reservation",
    "dependency",
    "mail_user",
    "mail_type",
    "comment",
    "licenses",
    "exclusive",
)

#: Options of the whole job: the first component of a heterogeneous job carries them.
_OF_THE_JOB = ("dependency", "mail-user", "mail-type", "comment", "licenses")


@dataclass(frozen=True, slots=True)
class Component:
    """Equal hosts of a job and their sbatch options."""

    nodes: int
    tasks_per_node: int
    options: Mapping[str, object]


def components(resources: Resources) -> tuple[Component, ...]:
    """The job's components: one, or one for each group of uneven hosts."""
    if not resources.groups:
        return (_component(resources, resources.nodes, resources.tasks_per_node, _options(resources)),)
    return tuple(_group(resources, group, number) for number, group in enumerate(resources.groups))


def world_size(resources: Resources) -> int:
    """How many ranks the job starts."""
    return sum(part.nodes * part.tasks_per_node for part in components(resources))


def _group(resources: Resources, group: Group, number: int) -> Component:
    options = _options(resources)
    if group.gpus:
        options["gres"] = f"gpu:{group.gpus}"
    for name in ("partition", "constraint"):
        if (value := getattr(group, name)) is not None:
            options[name] = value
    if number > 0:
        options = {name: value for name, value in options.items() if name not in _OF_THE_JOB}
    return _component(resources, group.nodes, max(1, group.gpus), options)


def _component(
    resources: Resources, nodes: int, tasks_per_node: int, options: dict[str, object]
) -> Component:
    shape: dict[str, object] = {"nodes": nodes, "ntasks-per-node": tasks_per_node}
    return Component(nodes, tasks_per_node, {**shape, **options})


def _options(resources: Resources) -> dict[str, object]:
    """Options that were given, then any other option by name, which wins."""
    named = {name.replace("_", "-"): getattr(resources, name) for name in _SAME_NAME}
    given: dict[str, object] = {n: v for n, v in named.items() if v is not None and v is not False}
    for name, value in resources.sbatch.items():
        key = name.lstrip("-").replace("_", "-")
        if value is None or value is False:
            given.pop(key, None)
        else:
            given[key] = value
    return given
