"""What is free in each partition now, and who preempts whom."""

from __future__ import annotations

from dataclasses import replace

from slurm.client.parse import HostUse
from slurm.doctor.cluster import Cluster
from slurm.doctor.partitions import preempting, rows
from tests.slurm.doctor.clusters import cluster, partition


def use(state: str, gres: str = "", used: str = "", hosts: int = 1) -> HostUse:
    return HostUse(partition="main", state=state, hosts=hosts, gres=gres, gres_used=used)


def main_with(*uses: HostUse) -> Cluster:
    return replace(cluster(), partitions=(partition("main"),), uses=uses)


def test_rows_show_hosts_gpus_limits_and_preemption_of_the_recorded_cluster() -> None:
    main, preemptible, _, urgent = rows(cluster())
    assert (main.name, main.is_default, main.idle, main.mixed, main.hosts) == ("main", True, 2, 2, 4)
    assert (main.gpus_free, main.gpus) == ({"gpu": 13}, {"gpu": 16})
    assert (main.max_time_min, main.default_time_min) == (60, None)
    assert (preemptible.preempted_by, urgent.preempted_by, main.preempted_by) == (("urgent",), (), ())
    assert (main.tier, urgent.tier) == (1, 10)


def test_gpus_are_told_apart_by_type() -> None:
    uses = [
        use("mixed", "gpu:a100:4(S:0-1)", "gpu:a100:1(IDX:0)", hosts=2),
        use("idle", "gpu:v100:2", "gpu:v100:0(IDX:N/A)"),
    ]
    (row,) = rows(main_with(*uses))
    assert row.gpus == {"a100": 8, "v100": 2}
    assert row.gpus_free == {"a100": 6, "v100": 2}


def test_gpus_of_hosts_that_can_start_nothing_are_not_free() -> None:
    states = ("allocated", "down*", "idle*", "drained", "draining", "reserved", "mixed*")
    (row,) = rows(main_with(*(use(state, "gpu:4", "gpu:0") for state in states)))
    assert (row.gpus_free, row.gpus) == ({"gpu": 0}, {"gpu": 28})
    assert (row.idle, row.mixed) == (0, 0)


def test_powered_down_hosts_count_as_free() -> None:
    (row,) = rows(main_with(use("idle~", "gpu:4", "gpu:0"), use("mixed-", "gpu:4", "gpu:3")))
    assert (row.idle, row.mixed, row.gpus_free) == (1, 1, {"gpu": 5})


def test_a_cluster_without_gpus_has_none() -> None:
    (row,) = rows(main_with(use("idle", "craynetwork:4")))
    assert (row.gpus, row.gpus_free) == ({}, {})


def test_the_default_partition_comes_first() -> None:
    other = replace(cluster(), partitions=(partition("urgent"), partition("main")))
    assert [row.name for row in rows(other)] == ["main", "urgent"]


def test_only_a_higher_tier_on_the_same_hosts_preempts() -> None:
    apart = partition("urgent", hosts="other-[1-4]")
    level = partition("urgent", name="level", priority_tier=1)
    both = replace(cluster(), partitions=(partition("preemptible"), apart, level))
    assert preempting(both)["preemptible"] == ()


def test_no_partition_preempts_with_preemption_by_qos() -> None:
    assert preempting(cluster(PreemptType="preempt/qos")) == {}
