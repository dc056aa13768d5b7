"""A user's rights in accounting, as values: QOS and associations, with their limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from slurm.client.parse import names_of, names_printed, parse_seconds, printed, record_of, rows

_LIMITS = (
    "MaxWall", "MaxTRES", "MaxTRESPU", "MaxJobs", "MaxJobsPU", "MaxSubmit", "MaxSubmitPU",
    "GrpTRES", "GrpJobs", "GrpSubmit",
)  # fmt: skip
_LIMITS_OF_QOS = [name for name in _LIMITS if name not in ("MaxJobs", "MaxSubmit")]
_LIMITS_OF_ASSOCIATION = [name for name in _LIMITS if name[-2:] != "PU"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Qos:
    """A QOS: which QOS it preempts, how its jobs are preempted, and its limits as printed, by name."""

    name: str = field(metadata=printed("Name"))
    grace_s: int = field(metadata=printed("GraceTime", parse_seconds))
    preempts: frozenset[str] = field(metadata=printed("Preempt", names_of))
    preempt_mode: str = field(metadata=printed("PreemptMode"))
    flags: frozenset[str] = field(metadata=printed("Flags", names_of))
    limits: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """A user's association with an account, perhaps for one partition only, and its limits as printed."""

    account: str = field(metadata=printed("Account"))
    partition: str = field(metadata=printed("Partition"))
    qos: frozenset[str] = field(metadata=printed("QOS", names_of))
    limits: Mapping[str, str]


#: For `sacctmgr show qos` and `show assoc` with --parsable2.
QOS_FORMAT = ",".join([*names_printed(Qos), *_LIMITS_OF_QOS])
ASSOCIATION_FORMAT = ",".join([*names_printed(Association), *_LIMITS_OF_ASSOCIATION])


def parse_qos(text: str) -> list[Qos]:
    """Return every QOS from `sacctmgr --noheader --parsable2 show qos format=QOS_FORMAT`."""
    found = rows(text, Qos, *_LIMITS_OF_QOS, separator="|")
    return [record_of(Qos, values, limits=_limits(values)) for values in found]


def parse_associations(text: str) -> list[Association]:
    """Return associations from `sacctmgr --noheader --parsable2 show assoc format=ASSOCIATION_FORMAT`."""
    found = rows(text, Association, *_LIMITS_OF_ASSOCIATION, separator="|")
    return [record_of(Association, values, limits=_limits(values)) for values in found]


def _limits(values: Mapping[str, str]) -> dict[str, str]:
    return {name: values[name] for name in _LIMITS if values.get(name)}
