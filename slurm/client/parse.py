"""Parse the output of Slurm's programs. Pure functions over text; nothing here starts a program.

Only text with an explicit format is read: the layout of `--json` changes between releases.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from slurm.client.hostlist import expand
from slurm.client.quantities import parse_minutes
from toolkit.errors import UserError

#: Field and record separators: control characters, because a job name may contain any other character.
SEPARATOR, _RECORD = "\x1f", "\x1e"

_JOB_FIELDS = (
    "JobArrayID", "JobID", "State", "Reason", "RestartCnt", "Requeue", "SubmitTime", "StartTime",
    "NodeList", "UserName", "Partition", "Dependency", "WorkDir", "Name",
)  # fmt: skip
#: For `squeue --Format`; the name comes last because it is free text.
JOB_FORMAT = ",".join(f"{field}:{SEPARATOR}" for field in _JOB_FIELDS[:-1]) + f",{_JOB_FIELDS[-1]}:{_RECORD}"

_ACCOUNTING_FIELDS = ("JobID", "JobIDRaw", "State", "ExitCode", "Start", "NodeList", "JobName")
#: For `sacct --format`.
ACCOUNTING_FORMAT = ",".join(_ACCOUNTING_FIELDS)

_HOST_FIELDS = ("%R", "%c", "%m", "%G", "%f", "%N")
#: For `sinfo --format`: one line for all equal hosts of a partition.
HOST_FORMAT = SEPARATOR.join(_HOST_FIELDS)

_USE_FIELDS = ("PartitionName", "StateLong", "Nodes", "Gres", "GresUsed")
#: For `sinfo --Format`: one line for all hosts of a partition that are equally busy.
USE_FORMAT = ",".join(f"{field}:{SEPARATOR}" for field in _USE_FIELDS[:-1]) + f",{_USE_FIELDS[-1]}:{_RECORD}"

#: Slurm's NO_VAL: ids are below it.
_NO_JOB = 0xFFFFFFFE
_JOB_ID = re.compile(r"\d{1,10}([_+]\d{1,10})?", re.ASCII)
_NOTHING = frozenset({"", "(null)", "N/A", "None", "Unknown", "n/a"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job in the controller's memory.

    job_id          as users write it: 12, 12_3 (array task), 12+1 (component of a heterogeneous job)
    raw_id          its number, which an array task has too
    state, reason   Slurm's words; the reason may be empty
    restarts        how often it was requeued
    requeue         whether Slurm may requeue it
    submitted, started   local time; the expected start while it waits
    hosts           a host list, empty while it waits
    dependency      the jobs that it still waits for, as Slurm writes them
    """

    job_id: str
    raw_id: str
    state: str
    reason: str
    restarts: int
    requeue: bool
    submitted: datetime | None
    started: datetime | None
    hosts: str
    user: str
    partition: str
    work_dir: str
    name: str
    dependency: str = ""

    @property
    def base_id(self) -> str:
        """The id of the whole array or heterogeneous job."""
        return base_id(self.job_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounted:
    """One start of a job in the accounting database; a requeued job has several."""

    job_id: str
    raw_id: str
    state: str
    exit_code: str
    started: datetime | None
    hosts: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition and its limits; None for no limit, an empty set if no name is listed.

    default_time_min  time of a job that requests none; None: the limit
    default_memory    memory of a job that requests none: DefMemPerNode=…, DefMemPerCPU=… as printed
    """

    name: str
    is_default: bool
    state: str
    hosts: str
    total_nodes: int
    min_nodes: int
    max_nodes: int | None
    max_time_min: int | None
    max_cpus_per_node: int | None
    allow_accounts: frozenset[str] | None
    deny_accounts: frozenset[str]
    allow_qos: frozenset[str] | None
    deny_qos: frozenset[str]
    preempt_mode: str
    grace_s: int
    priority_tier: int = 1
    default_time_min: int | None = None
    default_memory: str = ""

    @property
    def can_be_preempted(self) -> bool:
        return self.preempt_mode.upper() not in ("", "OFF")

    @property
    def host_names(self) -> frozenset[str]:
        """The names of its hosts; empty if their list cannot be parsed."""
        try:
            return frozenset(expand(self.hosts))
        except UserError:
            return frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUse:
    """Hosts of one partition that are equally busy now.

    state            Slurm's word with its suffix, such as a star for a host that does not answer
    gres, gres_used  of each host
    """

    partition: str
    state: str
    hosts: int
    gres: str
    gres_used: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostGroup:
    """Equal hosts of one partition; memory in MB."""

    partition: str
    hosts: str
    cpus: int
    memory_mb: int
    gres: str
    features: frozenset[str]


def is_job_id(text: str) -> bool:
    """Whether a text is the id of a job: 12, 12_3 or 12+1. Slurm's programs may read others as options.

    An invalid word or a number above the largest id makes squeue refuse the whole list (measured, 22.05).
    """
    return _JOB_ID.fullmatch(text) is not None and 0 < int(base_id(text)) < _NO_JOB


def base_id(job_id: str) -> str:
    """Return the id of the whole job: 12 for 12, 12_3 and 12+1."""
    return re.split(r"[_+]", job_id, maxsplit=1)[0]


def parse_jobs(text: str) -> list[Job]:
    """Return the jobs from `squeue --noheader --array --Format JOB_FORMAT`."""
    return [
        Job(
            job_id=fields["JobArrayID"],
            raw_id=fields["JobID"],
            state=fields["State"],
            reason=_printed(fields["Reason"]),
            restarts=_leading_number(fields["RestartCnt"]),
            requeue=fields["Requeue"] == "1",
            submitted=parse_time(fields["SubmitTime"]),
            started=parse_time(fields["StartTime"]),
            hosts=fields["NodeList"],
            user=fields["UserName"],
            partition=fields["Partition"],
            dependency=_printed(fields["Dependency"]),
            work_dir=fields["WorkDir"],
            name=fields["Name"],
        )
        for fields in records(text, _JOB_FIELDS, f"{_RECORD}\n")
    ]


def parse_dependencies(text: str) -> dict[str, str]:
    """Return the dependencies of jobs by their ids, from `squeue --noheader --format=%i|%E`.

    The pending tasks of an array are one entry (12_[0-3%2]); components of a heterogeneous job have one each
    (12+0). Slurm's suffix, as in `afterok:12(unfulfilled)`, is removed: sbatch and scontrol refuse it.
    """
    lines = (line.split("|", 1) for line in text.splitlines() if "|" in line)
    found = {
        job_id.strip().partition("_[")[0]: re.sub(r"\([^)]*\)", "", words.strip()) for job_id, words in lines
    }
    return {job_id: words for job_id, words in found.items() if words not in _NOTHING and words != "NULL"}


def parse_accounting(text: str) -> list[Accounted]:
    """Return starts from `sacct --noheader --parsable2 --delimiter SEPARATOR --format ACCOUNTING_FORMAT`."""
    return [
        Accounted(
            job_id=fields["JobID"],
            raw_id=fields["JobIDRaw"],
            state=fields["State"],
            exit_code=fields["ExitCode"],
            started=parse_time(fields["Start"]),
            hosts="" if fields["NodeList"] == "None assigned" else fields["NodeList"],
            name=fields["JobName"],
        )
        for fields in records(text, _ACCOUNTING_FIELDS)
    ]


def parse_hosts(text: str) -> list[HostGroup]:
    """Return groups of equal hosts from `sinfo --noheader --exact --format HOST_FORMAT`."""
    return [
        HostGroup(
            partition=fields["%R"],
            hosts=fields["%N"],
            cpus=_leading_number(fields["%c"]),
            memory_mb=_leading_number(fields["%m"]),
            gres=_printed(fields["%G"]),
            features=names_of(fields["%f"]),
        )
        for fields in records(text, _HOST_FIELDS)
    ]


def parse_uses(text: str) -> list[HostUse]:
    """Return the use of hosts, from `sinfo --noheader --Format USE_FORMAT`."""
    return [
        HostUse(
            partition=fields["PartitionName"],
            state=fields["StateLong"],
            hosts=_leading_number(fields["Nodes"]),
            gres=_printed(fields["Gres"]),
            gres_used=_printed(fields["GresUsed"]),
        )
        for fields in records(text, _USE_FIELDS, f"{_RECORD}\n")
    ]


def parse_seconds(text: str) -> int:
    """Return the seconds of a duration of Slurm: 10 sec, 00:01:00, 1-00:00:00; 0 for anything else."""
    days, _, clock = text.rpartition("-")
    words = [days or "0", *clock.split(":")]
    if len(words) != 4 or not all(word.isdecimal() for word in words):
        return _leading_number(text)
    seconds = 0
    for word, factor in zip(words, (24, 60, 60, 1), strict=True):
        seconds = (seconds + int(word)) * factor
    return seconds


def parse_partitions(text: str) -> list[Partition]:
    """Return the partitions from `scontrol --oneliner show partition`."""
    lines = [line for line in text.splitlines() if line.startswith("PartitionName=")]
    return [
        Partition(
            name=fields["PartitionName"],
            is_default=fields.get("Default") == "YES",
            state=fields.get("State", ""),
            hosts=_printed(fields.get("Nodes", "")),
            total_nodes=_leading_number(fields.get("TotalNodes", "")),
            min_nodes=_leading_number(fields.get("MinNodes", "")),
            max_nodes=whole(fields.get("MaxNodes", "")),
            max_time_min=minutes_of(fields.get("MaxTime", "")),
            max_cpus_per_node=whole(fields.get("MaxCPUsPerNode", "")),
            allow_accounts=_allowed(fields.get("AllowAccounts", "ALL")),
            deny_accounts=names_of(fields.get("DenyAccounts", "")),
            allow_qos=_allowed(fields.get("AllowQos", "ALL")),
            deny_qos=names_of(fields.get("DenyQos", "")),
            preempt_mode=fields.get("PreemptMode", ""),
            grace_s=_leading_number(fields.get("GraceTime", "")),
            priority_tier=_leading_number(fields.get("PriorityTier", "1")),
            default_time_min=minutes_of(fields.get("DefaultTime", "")),
            default_memory=_default_memory(fields),
        )
        for fields in map(fields_of_line, lines)
    ]


def parse_job(text: str) -> dict[str, str]:
    """Return the first record of `scontrol show job`, key to value; values such as `(null)` are kept.

    Free text (name, comment, paths) ends its line, so it may contain blanks and equal signs.
    """
    fields: dict[str, str] = {}
    for line in text.strip().split("\n\n")[0].splitlines():
        for key, value in fields_of_line(line.strip(), free=_FREE_TEXT).items():
            fields.setdefault(key, value)
    return fields


def parse_config(text: str) -> dict[str, str]:
    """Return the settings of `scontrol show config`, keys as printed."""
    pairs = (re.match(r"(\S+)\s+= ?(.*)", line) for line in text.splitlines())
    return {pair[1]: pair[2].strip() for pair in pairs if pair}


def parse_time(text: str) -> datetime | None:
    """Return a time as Slurm prints it; None for a text such as N/A."""
    return None if text in _NOTHING else datetime.fromisoformat(text)


_FREE_TEXT = frozenset(
    {"JobName", "Comment", "AdminComment", "SystemComment", "Extra", "Command", "WorkDir", "SubmitLine"}
    | {"StdErr", "StdIn", "StdOut"}
)
_KEY = re.compile(r"(?:^|\s)([A-Za-z][\w:/.\-]*)=")


def fields_of_line(line: str, free: frozenset[str] = frozenset()) -> dict[str, str]:
    """Return the `key=value` pairs of a line; values may have blanks, a `free` one is the whole rest."""
    fields: dict[str, str] = {}
    found = list(_KEY.finditer(line))
    for here, after in itertools.zip_longest(found, found[1:]):
        if here[1] in free:
            fields.setdefault(here[1], line[here.end() :].strip())
            break
        fields.setdefault(here[1], line[here.end() : after.start() if after else None].strip())
    return fields


def records(
    text: str, names: Sequence[str], end: str = "\n", separator: str = SEPARATOR
) -> Iterator[dict[str, str]]:
    """Yield the records of a program's output, as field name to value; the last field may be free text."""
    for record in text.split(end):
        values = record.split(separator, len(names) - 1)
        if len(values) == len(names):
            yield dict(zip(names, values, strict=True))


def _printed(text: str) -> str:
    """Return a value as printed; empty if Slurm prints a word for nothing, such as (null)."""
    return "" if text in _NOTHING else text


def _default_memory(fields: dict[str, str]) -> str:
    found = (f"{name}={fields.get(name, '')}" for name in ("DefMemPerNode", "DefMemPerCPU"))
    return next((each for each in found if each[-1:].isdecimal()), "")


def minutes_of(text: str) -> int | None:
    """Return the minutes of a time limit as Slurm prints it; None for no limit."""
    return parse_minutes(text) if text[:1].isdecimal() else None


def whole(text: str) -> int | None:
    """Return a whole number; None for anything else, such as UNLIMITED."""
    return int(text) if text.isdecimal() else None


def _leading_number(text: str) -> int:
    """Return the number at the start; 0 without one. sinfo may append a plus, squeue prints N/A for 0."""
    match = re.match(r"\d+", text)
    return int(match[0]) if match else 0


def _allowed(text: str) -> frozenset[str] | None:
    return None if text.upper() == "ALL" else names_of(text)


def names_of(text: str) -> frozenset[str]:
    """Return the names of a comma-separated list; empty if Slurm prints a word for nothing."""
    return frozenset(text.split(",")) if text not in _NOTHING else frozenset()
