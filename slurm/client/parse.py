"""Parse the output of Slurm's programs. Pure functions over text; nothing here starts a program.

Only text with an explicit format is read: the layout of `--json` changes between releases.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from slurm.client.hostlist import expand
from slurm.client.quantities import parse_minutes
from toolkit.errors import UserError

#: Field and record separators: control characters, because a job name may contain any other character.
SEPARATOR, _RECORD = "\x1f", "\x1e"

#: Slurm's NO_VAL: ids are below it.
_NO_JOB = 0xFFFFFFFE
_JOB_ID = re.compile(r"\d{1,10}([_+]\d{1,10})?", re.ASCII)
_NOTHING = frozenset({"", "(null)", "N/A", "None", "Unknown", "n/a"})
_PRINTED = "slurm"
_T = TypeVar("_T")


def is_job_id(text: str) -> bool:
    """Whether a text is the id of a job: 12, 12_3 or 12+1. Slurm's programs may read others as options.

    An invalid word or a number above the largest id makes squeue refuse the whole list (measured, 22.05).
    """
    return _JOB_ID.fullmatch(text) is not None and 0 < int(base_id(text)) < _NO_JOB


def base_id(job_id: str) -> str:
    """Return the id of the whole job: 12 for 12, 12_3 and 12+1."""
    return re.split(r"[_+]", job_id, maxsplit=1)[0]


def parse_time(text: str) -> datetime | None:
    """Return a time as Slurm prints it; None for a text such as N/A."""
    return None if text in _NOTHING else datetime.fromisoformat(text)


def parse_seconds(text: str) -> int:
    """Return the seconds of a duration of Slurm: 10 sec, 00:01:00, 1-00:00:00; 0 for anything else."""
    match = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d+):(\d+)", text)
    if match is None:
        return _leading_number(text)
    days, hours, minutes, seconds = (int(number or 0) for number in match.groups())
    return 60 * (60 * (24 * days + hours) + minutes) + seconds


def minutes_of(text: str) -> int | None:
    """Return the minutes of a time limit as Slurm prints it; None for no limit."""
    return parse_minutes(text) if text[:1].isdecimal() else None


def whole(text: str) -> int | None:
    """Return a whole number; None for anything else, such as UNLIMITED."""
    return int(text) if text.isdecimal() else None


def names_of(text: str) -> frozenset[str]:
    """Return the names of a comma-separated list; empty if Slurm prints a word for nothing."""
    return frozenset(text.split(",")) if text not in _NOTHING else frozenset()


def _printed(text: str) -> str:
    """Return a value as printed; empty if Slurm prints a word for nothing, such as (null)."""
    return "" if text in _NOTHING else text


def _leading_number(text: str) -> int:
    """Return the number at the start; 0 without one. sinfo may append a plus, squeue prints N/A for 0."""
    match = re.match(r"\d+", text)
    return int(match[0]) if match else 0


def _allowed(text: str) -> frozenset[str] | None:
    return None if text.upper() == "ALL" else names_of(text)


def printed(name: str, read: Callable[[str], Any] = str, *, missing: str = "") -> dict[str, Any]:
    """Return metadata of a dataclass's field.

    name      Slurm's name of it
    read      function that returns its value from its text
    missing   its text if Slurm does not print it
    """
    return {_PRINTED: (name, read, missing)}


@cache
def _table(of: Any) -> dict[str, tuple[str, Callable[[str], Any], str]]:
    return {each.name: each.metadata[_PRINTED] for each in fields(of) if _PRINTED in each.metadata}


def names_printed(of: Any) -> list[str]:
    return [name for name, _, _ in _table(of).values()]


def record_of(of: Callable[..., _T], values: Mapping[str, str], **more: Any) -> _T:
    """Return a record from its values by Slurm's names; more: fields without a name in Slurm."""
    read = {own: read(values.get(name, missing)) for own, (name, read, missing) in _table(of).items()}
    return of(**read, **more)


def rows(
    text: str, of: Any, *more: str, end: str = "\n", separator: str = SEPARATOR
) -> Iterator[dict[str, str]]:
    """Yield the records of a program's output as values by Slurm's names; the last value may be free text.

    more   names without a field of their own, after those of the fields
    """
    names = [*names_printed(of), *more]
    for record in text.split(end):
        values = record.split(separator, len(names) - 1)
        if len(values) == len(names):
            yield dict(zip(names, values, strict=True))


def _records(of: Callable[..., _T], text: str, end: str = "\n") -> list[_T]:
    return [record_of(of, values) for values in rows(text, of, end=end)]


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

    job_id: str = field(metadata=printed("JobArrayID"))
    raw_id: str = field(metadata=printed("JobID"))
    state: str = field(metadata=printed("State"))
    reason: str = field(metadata=printed("Reason", _printed))
    restarts: int = field(metadata=printed("RestartCnt", _leading_number))
    requeue: bool = field(metadata=printed("Requeue", lambda text: text == "1"))
    submitted: datetime | None = field(metadata=printed("SubmitTime", parse_time))
    started: datetime | None = field(metadata=printed("StartTime", parse_time))
    hosts: str = field(metadata=printed("NodeList"))
    user: str = field(metadata=printed("UserName"))
    partition: str = field(metadata=printed("Partition"))
    dependency: str = field(metadata=printed("Dependency", _printed))
    work_dir: str = field(metadata=printed("WorkDir"))
    name: str = field(metadata=printed("Name"))

    @property
    def base_id(self) -> str:
        """The id of the whole array or heterogeneous job."""
        return base_id(self.job_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounted:
    """One start of a job in the accounting database; a requeued job has several."""

    job_id: str = field(metadata=printed("JobID"))
    raw_id: str = field(metadata=printed("JobIDRaw"))
    state: str = field(metadata=printed("State"))
    exit_code: str = field(metadata=printed("ExitCode"))
    started: datetime | None = field(metadata=printed("Start", parse_time))
    hosts: str = field(metadata=printed("NodeList", lambda text: text.replace("None assigned", "")))
    name: str = field(metadata=printed("JobName"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition and its limits; None for no limit, an empty set if no name is listed.

    default_time_min  time of a job that requests none; None: the limit
    default_memory    memory of a job that requests none: DefMemPerNode=…, DefMemPerCPU=… as printed
    """

    name: str = field(metadata=printed("PartitionName"))
    is_default: bool = field(metadata=printed("Default", lambda text: text == "YES"))
    state: str = field(metadata=printed("State"))
    hosts: str = field(metadata=printed("Nodes", _printed))
    total_nodes: int = field(metadata=printed("TotalNodes", _leading_number))
    min_nodes: int = field(metadata=printed("MinNodes", _leading_number))
    max_nodes: int | None = field(metadata=printed("MaxNodes", whole))
    max_time_min: int | None = field(metadata=printed("MaxTime", minutes_of))
    max_cpus_per_node: int | None = field(metadata=printed("MaxCPUsPerNode", whole))
    allow_accounts: frozenset[str] | None = field(metadata=printed("AllowAccounts", _allowed, missing="ALL"))
    deny_accounts: frozenset[str] = field(metadata=printed("DenyAccounts", names_of))
    allow_qos: frozenset[str] | None = field(metadata=printed("AllowQos", _allowed, missing="ALL"))
    deny_qos: frozenset[str] = field(metadata=printed("DenyQos", names_of))
    preempt_mode: str = field(metadata=printed("PreemptMode"))
    grace_s: int = field(metadata=printed("GraceTime", _leading_number))
    priority_tier: int = field(metadata=printed("PriorityTier", _leading_number, missing="1"))
    default_time_min: int | None = field(metadata=printed("DefaultTime", minutes_of))
    default_memory: str

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

    partition: str = field(metadata=printed("PartitionName"))
    state: str = field(metadata=printed("StateLong"))
    hosts: int = field(metadata=printed("Nodes", _leading_number))
    gres: str = field(metadata=printed("Gres", _printed))
    gres_used: str = field(metadata=printed("GresUsed", _printed))


@dataclass(frozen=True, slots=True, kw_only=True)
class HostGroup:
    """Equal hosts of one partition; memory in MB."""

    partition: str = field(metadata=printed("%R"))
    cpus: int = field(metadata=printed("%c", _leading_number))
    memory_mb: int = field(metadata=printed("%m", _leading_number))
    gres: str = field(metadata=printed("%G", _printed))
    features: frozenset[str] = field(metadata=printed("%f", names_of))
    hosts: str = field(metadata=printed("%N"))


def _marked(of: Any) -> str:
    """Return a format of squeue and sinfo with marks behind each field, and behind the record."""
    *names, last = names_printed(of)
    return "".join(f"{name}:{SEPARATOR}," for name in names) + f"{last}:{_RECORD}"


#: For `squeue --Format`; the name comes last because it is free text.
JOB_FORMAT = _marked(Job)
#: For `sacct --format`.
ACCOUNTING_FORMAT = ",".join(names_printed(Accounted))
#: For `sinfo --format`: one line for all equal hosts of a partition.
HOST_FORMAT = SEPARATOR.join(names_printed(HostGroup))
#: For `sinfo --Format`: one line for all hosts of a partition that are equally busy.
USE_FORMAT = _marked(HostUse)


def parse_jobs(text: str) -> list[Job]:
    """Return the jobs from `squeue --noheader --array --Format JOB_FORMAT`."""
    return _records(Job, text, f"{_RECORD}\n")


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
    return _records(Accounted, text)


def parse_hosts(text: str) -> list[HostGroup]:
    """Return groups of equal hosts from `sinfo --noheader --exact --format HOST_FORMAT`."""
    return _records(HostGroup, text)


def parse_uses(text: str) -> list[HostUse]:
    """Return the use of hosts, from `sinfo --noheader --Format USE_FORMAT`."""
    return _records(HostUse, text, f"{_RECORD}\n")


def parse_partitions(text: str) -> list[Partition]:
    """Return the partitions from `scontrol --oneliner show partition`."""
    lines = [line for line in text.splitlines() if line.startswith("PartitionName=")]
    return [
        record_of(Partition, values, default_memory=_default_memory(values))
        for values in map(fields_of_line, lines)
    ]


def _default_memory(fields: dict[str, str]) -> str:
    found = (f"{name}={fields.get(name, '')}" for name in ("DefMemPerNode", "DefMemPerCPU"))
    return next((each for each in found if each[-1:].isdecimal()), "")


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
