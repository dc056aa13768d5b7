"""Clusters for the tests: as recorded, with some settings changed.

doctor/config.txt has what differs from the other recorded cluster's settings.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from slurm.client.account_limits import Qos, parse_associations, parse_qos
from slurm.client.parse import Partition, parse_config, parse_partitions, parse_uses
from slurm.doctor.cluster import Cluster
from slurm.doctor.findings import Finding

RECORDED = Path(__file__).parents[1] / "support" / "recorded" / "doctor"


def recorded(name: str) -> str:
    return (RECORDED / name).read_text(encoding="utf-8")


def cluster(**settings: str) -> Cluster:
    """The recorded cluster with other settings."""
    return Cluster(
        config={**parse_config(recorded("../config.txt") + recorded("config.txt")), **settings},
        partitions=tuple(parse_partitions(recorded("partitions.txt"))),
        uses=tuple(parse_uses(recorded("sinfo.txt"))),
        qos=tuple(parse_qos(recorded("qos.txt"))),
        associations=tuple(parse_associations(recorded("associations.txt"))),
    )


def partition(like: str, /, **facts: object) -> Partition:
    """The recorded partition of that name, changed."""
    (found,) = (each for each in parse_partitions(recorded("partitions.txt")) if each.name == like)
    return replace(found, **facts)


def qos(name: str, **facts: object) -> Qos:
    fixed = {
        "grace_s": 0,
        "preempts": frozenset(),
        "preempt_mode": "cluster",
        "flags": frozenset(),
        "limits": {},
    }
    return Qos(name=name, **{**fixed, **facts})


def about(findings: list[Finding], word: str) -> Finding:
    """The one finding that has a word in it."""
    found = [each for each in findings if word in f"{each.found} {each.follows}"]
    assert len(found) == 1, (word, [each.found for each in findings])
    return found[0]
