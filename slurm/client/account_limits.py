"""A user's rights in accounting, as values: QOS and associations, with their limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slurm.client.parse import names_of, parse_seconds, records

_LIMITS = (
    "MaxWall", "MaxTRES", "MaxTRESPU", "MaxJobs", "MaxJobsPU", "MaxSubmit", "MaxSubmitPU",
    "GrpTRES", "GrpJobs", "GrpSubmit",
)  # fmt: skip
_LIMITS_OF_QOS = [name for name in _LIMITS if name not in ("MaxJobs", "MaxSubmit")]
_QOS_FIELDS = ("Name", "GraceTime", "Preempt", "PreemptMode", "Flags", *_LIMITS_OF_QOS)
_ASSOCIATION_FIELDS = ("Account", "Partition", "QOS", *(name for name in _LIMITS if name[-2:] != "PU"))
#: For `sacctmgr show qos` and `show assoc` with --parsable2.
QOS_FORMAT, ASSOCIATION_FORMAT = ",".join(_QOS_FIELDS), ",".join(_ASSOCIATION_FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Qos:
    """A QOS: which QOS it preempts, how its jobs are preempted, and its limits as printed, by name."""

    name: str
    grace_s: int
    preempts: frozenset[str]
    preempt_mode: str
    flags: frozenset[str]
    limits: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """A user's association with an account, perhaps for one partition only, and its limits as printed."""

    account: str
    partition: str
    qos: frozenset[str]
    limits: Mapping[str, str]


def parse_qos(text: str) -> list[Qos]:
    """Return every QOS from `sacctmgr --noheader --parsable2 show qos format=QOS_FORMAT`."""
    return [
        Qos(
            name=fields["Name"],
            grace_s=parse_seconds(fields["GraceTime"]),
            preempts=names_of(fields["Preempt"]),
            preempt_mode=fields["PreemptMode"],
            flags=names_of(fields["Flags"]),
            limits=_limits(fields),
        )
        for fields in records(text, _QOS_FIELDS, separator="|")
    ]


def parse_associations(text: str) -> list[Association]:
    """Return associations from `sacctmgr --noheader --parsable2 show assoc format=ASSOCIATION_FORMAT`."""
    return [
        Association(
            account=fields["Account"],
            partition=fields["Partition"],
            qos=names_of(fields["QOS"]),
            limits=_limits(fields),
        )
        for fields in records(text, _ASSOCIATION_FIELDS, separator="|")
    ]


def _limits(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: fields[name] for name in _LIMITS if fields.get(name)}
