"""Options of sbatch from resources: one component, or several for a heterogeneous job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from slurm.client.hostlist import expand
from slurm.client.parse import Partition
from slurm.client.quantities import gres_of_request, parse_mb, parse_minutes
from slurm.config.resources import CPUS_BESIDE_A_GPU, Group, Resources
from slurm.config.sbatch_options import SAME_NAME, refused_options
from slurm.config.world_size import node_range
from toolkit.errors import UserError
from toolkit.launch.machines.host_names import is_local_name
from toolkit.precheck.violation_messages import raise_violations

#: Options of the whole job: only the first component of a heterogeneous job has them.
_OF_THE_JOB = ("dependency", "kill-on-invalid-dep", "mail-user", "mail-type", "comment", "licenses")


@dataclass(frozen=True, slots=True)
class Component:
    """Equal hosts of a job.

    least_nodes   the number of hosts that is enough to start
    options       options of sbatch, by long names
    step_options  options of srun that sbatch does not get
    """

    tasks_per_node: int
    options: Mapping[str, object]
    least_nodes: int
    step_options: Mapping[str, object]

    def text(self, name: str) -> str:
        """Return an option as text; empty if it is not given."""
        value = self.options.get(name)
        return "" if value is None else str(value).strip()

    def hosts(self, name: str) -> list[str]:
        """Return the hosts of an option; none for a file of hosts, which sbatch reads itself."""
        text = self.text(name)
        return [] if "/" in text else expand(text)

    def partitions(self, known: Iterable[Partition]) -> list[str]:
        """Return the names of the partitions that it may run in: the given ones, else the default."""
        named = [name for name in self.text("partition").split(",") if name]
        return named or [each.name for each in known if each.is_default]

    @property
    def cpus(self) -> int:
        """CPUs on each host."""
        # With a range of hosts, cpus-per-task already includes all tasks of a host.
        tasks = self.tasks_per_node if "ntasks-per-node" in self.options else 1
        return tasks * int(self.text("cpus-per-task") or 1)

    @property
    def gres(self) -> dict[tuple[str, str], int]:
        """Generic resources on each host by name and type; the type is empty if any is accepted.

        `gpus` counts those of all hosts, which Slurm may spread unevenly: known only for one host.
        """
        wanted = gres_of_request(self.text("gres"))
        for option, factor in (("gpus-per-node", 1), ("gpus-per-task", self.tasks_per_node)):
            for key, count in gres_of_request(self.text(option), "gpu").items():
                wanted[key] = max(count * factor, wanted.get(key, 0))
        if self.text("nodes") == "1" and not any(name == "gpu" for name, _ in wanted):
            wanted.update(gres_of_request(self.text("gpus"), "gpu"))
        return wanted

    @property
    def gpus(self) -> int:
        """GPUs of each host, of all types."""
        return sum(count for (name, _), count in self.gres.items() if name == "gpu")

    def memory_mb(self, *, is_tracked: bool) -> int:
        """Return the least memory of each host; 0 if no amount was requested.

        If Slurm does not allocate memory (measured), only the memory of one CPU must fit a host.
        """
        per_cpu, per_gpu = parse_mb(self.text("mem-per-cpu")), parse_mb(self.text("mem-per-gpu"))
        if not is_tracked or self.options.get("overcommit"):
            return max(parse_mb(self.text("mem")), per_cpu)
        return max(parse_mb(self.text("mem")), per_cpu * self.cpus, per_gpu * self.gpus)


def components(resources: Resources) -> tuple[Component, ...]:
    """Return the job's components: one, or one for each group of hosts, or for each named host."""
    if resources.hosts:
        return tuple(
            _group(resources, Group(nodes=1, gpus=gpus), number, _job_host(name))
            for number, (name, gpus) in enumerate(resources.hosts.items())
        )
    if not resources.groups:
        return (_component(resources.nodes, resources.tasks_per_node, _options(resources)),)
    return tuple(_group(resources, group, number) for number, group in enumerate(resources.groups))


def partitions_of(resources: Resources, partitions: Iterable[Partition]) -> list[str]:
    return components(resources)[0].partitions(partitions)


def _job_host(name: str) -> str:
    """Return a host's name for sbatch. Raises UserError for a name such as localhost."""
    if is_local_name(name):
        raise UserError(
            f"resources.hosts has {name}, which on each host means that host itself: a Slurm job needs the "
            "name that `sinfo -N` shows"
        )
    return name


def _group(resources: Resources, group: Group, number: int, host: str | None = None) -> Component:
    options = _options(resources)
    if host is not None:
        options["nodelist"] = host
    if group.gpus:
        options["gres"] = f"gpu:{group.gpus}"
    for name in ("partition", "constraint"):
        if (value := getattr(group, name)) is not None:
            options[name] = value
    if number > 0:
        options = {name: value for name, value in options.items() if name not in _OF_THE_JOB}
    return _component(group.nodes, max(1, group.gpus), options)


def _component(nodes: int | str, tasks_per_node: int, options: dict[str, object]) -> Component:
    least, _ = node_range(nodes)
    tasks: dict[str, object] = {"ntasks-per-node": tasks_per_node}
    options = _with_cpus(options)
    if isinstance(nodes, int):
        return Component(tasks_per_node, {"nodes": nodes, **tasks, **options}, least, {})
    asked, step = _elastic(tasks_per_node, options)
    return Component(tasks_per_node, {"nodes": nodes, **asked}, least, {**tasks, **step})


def _with_cpus(options: dict[str, object]) -> dict[str, object]:
    """Return options with CPUs for all threads of a rank on a GPU, if the user has not set the number."""
    gpus = any(name.startswith("gpus-per") for name in options) or "gpu" in str(options.get("gres"))
    if not gpus or {"cpus-per-task", "cpus-per-gpu"} & options.keys():
        return options
    return {**options, "cpus-per-task": CPUS_BESIDE_A_GPU}


def _elastic(tasks: int, options: dict[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Return options for a range of hosts: for sbatch those of each host, for srun those of each task.

    With the tasks of a host, sbatch would compute the total for the smallest number of hosts and allocate
    no more (measured, 22.05).
    """
    cpus, gpus = options.get("cpus-per-task"), options.get("gpus-per-task")
    asked = {name: value for name, value in options.items() if name != "gpus-per-task"}
    if cpus is not None or tasks > 1:
        asked["cpus-per-task"] = tasks * _whole("cpus-per-task", cpus or 1)
    step: dict[str, object] = {"cpus-per-task": cpus or 1}
    if gpus is not None:
        kind, colon, count = str(gpus).rpartition(":")
        asked["gpus-per-node"] = f"{kind}{colon}{tasks * _whole('gpus-per-task', count)}"
        step["gpus-per-task"] = gpus
    return asked, step


def _whole(option: str, value: object) -> int:
    if not str(value).isdecimal():
        raise UserError(
            f"{option} is {value!r}, expected a whole number: with a range of nodes it is counted for a host"
        )
    return int(str(value))


def signal_lead_s(resources: Resources) -> int:
    """Return the seconds before the time limit at which Slurm warns the ranks.

    Slurm may be a minute early, and in the first seconds of a short job the ranks cannot handle a warning
    yet: it comes two minutes after the start at the earliest, or in the last sixth.
    """
    minutes = parse_minutes(resources.time) if resources.time else None
    if minutes is None:
        return resources.signal_s
    return min(resources.signal_s, max(60 * minutes - 120, 10 * minutes))


def _options(resources: Resources) -> dict[str, object]:
    """Return the options of all keys that are set, then of `sbatch`. Null and false remove an option."""
    # A run of an earlier version may have recorded any option.
    raise_violations(refused_options(resources.sbatch), None)
    named = {name.replace("_", "-"): getattr(resources, name) for name in SAME_NAME}
    given: dict[str, object] = {n: v for n, v in named.items() if v is not None and v is not False}
    for name in ("mem", "mem-per-cpu", "mem-per-gpu"):
        # On some clusters, a number without a unit means gigabytes.
        if (amount := str(given.get(name, "0"))).isdecimal() and amount != "0":
            given[name] = f"{amount}M"
    if "dependency" in given:
        # Otherwise a job whose dependency can never be met would stay in the queue for ever.
        given["kill-on-invalid-dep"] = "yes"
    for name, value in resources.sbatch.items():
        key = name.replace("_", "-")
        if value is None or value is False:
            given.pop(key, None)
        else:
            given[key] = value
    return given
