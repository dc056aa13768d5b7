"""What can never run is refused before it is queued; the facts are those of a real cluster (22.05).

Two hosts with 4 CPUs, 8000 MB and 2 a100 (rack1), two with 8 CPUs, 16000 MB and 3 v100 (rack2).
Partition main has all of them and a limit of one day; small has rack1, one hour, one node and two
accounts; down is down.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slurm.client.parse import HostGroup, parse_hosts, parse_partitions
from slurm.config.resources import Group, Resources
from slurm.submission.checks.preflight import Facts, check_fits, preflight, read_facts
from tests.slurm.support.stubs import Stubs
from toolkit.errors import SlurmRefused

RECORDED = Path(__file__).parents[2] / "support" / "recorded"
FACTS = Facts(
    partitions=tuple(parse_partitions((RECORDED / "partitions.txt").read_text())),
    hosts=tuple(parse_hosts((RECORDED / "sinfo.txt").read_text())),
    max_array_size=1001,
    max_jobs=10_000,
    tracks_memory=True,
)


def _reasons(facts: Facts = FACTS, **resources: Any) -> list[str]:
    # These hosts have few CPUs, and a rank on a GPU would be given four.
    return check_fits(Resources(**{"cpus_per_task": 1, **resources}), facts)


@pytest.mark.parametrize(
    "resources",
    [
        {},
        {"nodes": 4, "tasks_per_node": 4, "cpus_per_task": 1},
        {"nodes": 2, "tasks_per_node": 8},
        {"time": "1-00:00:00"},
        {"time": "1440", "partition": "main"},
        {"partition": "small", "time": "60"},
        {"partition": "small", "account": "Physics"},
        {"partition": "main", "account": "anything"},
        {"partition": "down,main"},
        {"partition": "down"},
        {"nodes": 2, "gres": "gpu:a100:2"},
        {"nodes": 4, "gres": "gpu:2"},
        {"nodes": 2, "gres": "gpu:3"},
        {"nodes": "2-9", "gres": "gpu:3"},
        {"nodes": "2-9", "tasks_per_node": 8},
        {"nodes": 2, "gpus_per_node": "v100:3"},
        {"nodes": 2, "gpus_per_task": "1", "tasks_per_node": 3},
        {"mem": "8000M", "nodes": 4},
        {"mem": "0", "nodes": 4},
        {"mem_per_cpu": "2000", "tasks_per_node": 2, "cpus_per_task": 2, "nodes": 4},
        {"constraint": "v100", "nodes": 2},
        {"constraint": "v100&nothing"},
        {"nodelist": "rack1node[01-02]", "nodes": 2},
        {"nodelist": "/home/ada/hosts.txt"},
        {"exclude": "rack1node01", "nodes": 3},
        {"groups": (Group(nodes=1, gpus=3), Group(nodes=2, gpus=2))},
        {"gres": "fancy:thing:of:later"},
        {"sbatch": {"overcommit": True}, "tasks_per_node": 64},
        {"sbatch": {"time-min": "10"}, "time": "2-0"},
    ],
)
def test_possible_resources_are_accepted(resources: dict[str, Any]) -> None:
    assert _reasons(**resources) == []


def test_a_partition_that_takes_no_jobs_is_refused() -> None:
    drained = tuple(replace(each, state="DRAIN") for each in FACTS.partitions)
    (reason,) = _reasons(replace(FACTS, partitions=drained), partition="down")
    assert "DRAIN" in reason


@pytest.mark.parametrize(
    "resources, reason",
    [
        (
            {"partition": "mian"},
            "partition 'mian' does not exist; there are down, main, small; did you mean main?",
        ),
        ({"time": "2-00:00:00"}, "time 2-00:00:00 is above MaxTime 1-00:00:00 of partition main"),
        ({"time": "UNLIMITED"}, "time UNLIMITED is above MaxTime 1-00:00:00 of partition main"),
        ({"time": "61", "partition": "small"}, "time 01:01:00 is above MaxTime 01:00:00 of partition small"),
        ({"nodes": 5}, "5 nodes, but partition main has 4"),
        ({"nodes": "5-9"}, "5 nodes, but partition main has 4"),
        ({"nodes": 2, "partition": "small"}, "2 nodes are above MaxNodes 1 of partition small"),
        (
            {"partition": "small", "account": "biology"},
            "account biology is not among AllowAccounts of partition small: chemistry, physics",
        ),
        (
            {"nodes": 3, "gres": "gpu:a100:2"},
            "gres gpu:a100:2: 2 of 4 hosts of partition main have it, 3 needed "
            "(rack1node[01-02]: gpu:a100:2; rack2node[01-02]: gpu:v100:3)",
        ),
        (
            {"gpus_per_node": "h100:1"},
            "gres gpu:h100:1: 0 of 4 hosts of partition main have it, 1 needed "
            "(rack1node[01-02]: gpu:a100:2; rack2node[01-02]: gpu:v100:3)",
        ),
        (
            {"gpus_per_task": "1", "tasks_per_node": 4},
            "gres gpu:4: 0 of 4 hosts of partition main have it, 1 needed "
            "(rack1node[01-02]: gpu:a100:2; rack2node[01-02]: gpu:v100:3)",
        ),
        (
            {"tasks_per_node": 3, "cpus_per_task": 3},
            "9 CPUs a host (3 tasks): 0 of 4 hosts of partition main have it, 1 needed "
            "(rack1node[01-02]: 4 CPUs; rack2node[01-02]: 8 CPUs)",
        ),
        (
            {"mem": "9G", "nodes": 3},
            "9G of memory a host: 2 of 4 hosts of partition main have it, 3 needed "
            "(rack1node[01-02]: 8000M; rack2node[01-02]: 16000M)",
        ),
        (
            {"mem_per_cpu": "5G", "cpus_per_task": 4},
            "20G of memory a host: 0 of 4 hosts of partition main have it, 1 needed "
            "(rack1node[01-02]: 8000M; rack2node[01-02]: 16000M)",
        ),
        (
            {"mem_per_gpu": "8G", "gres": "gpu:2", "partition": "small"},
            "16G of memory a host: 0 of 2 hosts of partition small have it, 1 needed "
            "(rack1node[01-02]: 8000M)",
        ),
        (
            {"constraint": "ib", "nodes": 3},
            "constraint ib: 2 of 4 hosts of partition main have it, 3 needed "
            "(rack1node[01-02]: a100, ib; rack2node[01-02]: v100)",
        ),
        (
            {"gres": "gpu:3", "constraint": "a100"},
            "gres gpu:3, 1 CPUs a host (1 tasks), constraint a100: 0 of 4 hosts of partition main have all "
            "of it, 1 needed",
        ),
        ({"nodelist": "rack1node03"}, "nodelist: there is no host 'rack1node03'; did you mean rack1node02?"),
        ({"exclude": "x[1-"}, "exclude: host list 'x[1-', character 2: '[' is never closed"),
        ({"exclude": "nowhere"}, "exclude: there is no host 'nowhere'"),
        (
            {"nodelist": "rack2node01", "partition": "small"},
            "nodelist: rack2node01 not in partition small, or excluded",
        ),
        (
            {"exclude": "rack1node[01-02]", "nodes": 3},
            "3 nodes, but partition main has 2 that are not excluded",
        ),
        ({"mem": "lots"}, "'lots' is not an amount of memory: expected a number with K, M, G or T"),
    ],
)
def test_impossible_resources_are_refused_with_the_limit(resources: dict[str, Any], reason: str) -> None:
    assert _reasons(**resources) == [reason]


def test_unreadable_time_limit_is_refused() -> None:
    (reason,) = _reasons(time="2h")
    assert reason.startswith("time: '2h' is not a time limit")


def test_all_reasons_are_listed_at_once() -> None:
    reasons = _reasons(partition="small", nodes=3, time="2-0", account="biology", gres="gpu:8", mem="1T")
    assert [reason.split(" ")[0] for reason in reasons] == ["time", "3", "3", "account", "gres", "1T"]


def test_any_partition_of_several_may_take_the_job() -> None:
    assert _reasons(partition="small,main", time="600") == []
    reasons = _reasons(partition="small,main", time="2-0")
    assert [reason.rpartition(" ")[2] for reason in reasons] == ["small", "main"]


def test_uneven_groups_are_checked_one_by_one() -> None:
    reasons = _reasons(groups=(Group(nodes=1, gpus=3), Group(nodes=2, gpus=4, partition="small")))
    assert all(reason.startswith("groups[1]: ") for reason in reasons)
    assert any("gres gpu:4: 0 of 2 hosts of partition small" in reason for reason in reasons)


@pytest.mark.parametrize(
    "resources, cpus",
    [
        ({"tasks_per_node": 2, "gres": "gpu:a100:2"}, 2),
        ({"gpus_per_task": "1", "tasks_per_node": 3}, 2),
        ({"groups": (Group(nodes=2, gpus=3),)}, 2),
    ],
)
def test_largest_fitting_cpus_per_task_is_suggested_if_none_was_requested(
    resources: dict[str, Any], cpus: int
) -> None:
    reasons = check_fits(Resources(**resources), FACTS)
    assert f"resources.cpus_per_task={cpus}" in reasons[-1]
    assert check_fits(Resources(**resources, cpus_per_task=cpus), FACTS) == []
    assert check_fits(Resources(**resources, cpus_per_task=cpus + 1), FACTS) != []


@pytest.mark.parametrize("resources", [{"cpus_per_task": 5, "gres": "gpu:a100:1"}, {"gres": "gpu:8"}])
def test_fewer_cpus_are_not_suggested_if_requested_or_of_no_help(resources: dict[str, Any]) -> None:
    reasons = check_fits(Resources(**resources), FACTS)
    assert reasons
    assert not any("resources.cpus_per_task" in reason for reason in reasons)


def test_without_a_default_partition_one_must_be_given() -> None:
    facts = replace(FACTS, partitions=tuple(replace(p, is_default=False) for p in FACTS.partitions))
    assert _reasons(facts) == [
        "no partition was given and the cluster has no default; there are down, main, small"
    ]
    assert _reasons(facts, partition="main") == []


@pytest.mark.parametrize("flags", [frozenset({"PartitionTimeLimit", "PartitionMaxNodes"}), None])
def test_a_qos_that_lifts_limits_or_is_unknown_is_left_to_slurm(flags: frozenset[str] | None) -> None:
    request: dict[str, Any] = {"partition": "small", "nodes": 2, "time": "600", "qos": "long"}
    assert _reasons(replace(FACTS, qos_flags=flags), **request) == []
    assert len(_reasons(FACTS, **request)) == 2


def test_denied_accounts_and_qos_are_refused() -> None:
    main = replace(FACTS.partitions[0], deny_accounts=frozenset({"guests"}), allow_qos=frozenset({"long"}))
    facts = replace(FACTS, partitions=(main,))
    assert _reasons(facts, account="guests", qos="short") == [
        "account guests is denied by partition main",
        "qos short is not among AllowQos of partition main: long",
    ]


def test_a_partitions_own_limit_of_cpus_counts() -> None:
    main = replace(FACTS.partitions[0], max_cpus_per_node=2)
    (reason,) = _reasons(replace(FACTS, partitions=(main,)), tasks_per_node=3)
    assert "0 of 4 hosts" in reason


def test_only_memory_of_one_cpu_must_fit_if_memory_is_not_tracked() -> None:
    facts = replace(FACTS, tracks_memory=False)
    assert _reasons(facts, mem_per_cpu="5G", cpus_per_task=4) == []
    assert len(_reasons(facts, mem_per_cpu="17G")) == 1
    assert len(_reasons(facts, mem="17G")) == 1


def test_hosts_that_cannot_be_seen_are_left_to_slurm() -> None:
    """A cloud's hosts appear when they are needed."""
    facts = replace(FACTS, hosts=tuple(group for group in FACTS.hosts if "rack1" in group.hosts))
    assert _reasons(facts, nodes=4, gres="gpu:h100:8", nodelist="cloud7") == []


def test_a_plugin_of_the_site_may_choose_any_partition_if_none_is_named() -> None:
    partitions = tuple(replace(each, is_default=each.name == "small") for each in FACTS.partitions)
    facts = replace(FACTS, partitions=partitions)
    assert _reasons(facts, time="2:00:00")
    chosen = replace(facts, site_chooses=True)
    assert not _reasons(chosen, time="2:00:00")
    assert _reasons(chosen, time="2:00:00", partition="small")
    assert _reasons(chosen, nodes=99)


def test_a_cluster_that_shows_nothing_is_left_to_slurm() -> None:
    assert _reasons(Facts(partitions=(), hosts=()), partition="any", nodes=99) == []


def test_reason_for_ten_thousand_hosts_is_one_line() -> None:
    main = replace(FACTS.partitions[0], total_nodes=10_000)
    group = HostGroup(
        partition="main", hosts="n[00000-09999]", cpus=4, memory_mb=1, gres="", features=frozenset()
    )
    (reason,) = _reasons(Facts(partitions=(main,), hosts=(group,)), nodes=10_000, gres="gpu:1")
    assert reason.endswith("0 of 10000 hosts of partition main have it, 10000 needed (n[00000-09999]: none)")


@pytest.fixture
def cluster(stubs: Stubs) -> Stubs:
    """The recorded cluster behind stub programs."""
    stubs.answers("sinfo", (RECORDED / "sinfo.txt").read_text())
    partitions, config = RECORDED / "partitions.txt", RECORDED / "config.txt"
    stubs.add("scontrol", f'case "$*" in *partition) /bin/cat {partitions};; *) /bin/cat {config};; esac')
    stubs.answers("sacctmgr", "long||||PartitionTimeLimit||||||||\n")
    return stubs


def test_facts_are_read_with_three_calls(cluster: Stubs) -> None:
    assert read_facts(Resources()) == FACTS
    assert [len(cluster.calls(name)) for name in ("scontrol", "sinfo", "sacctmgr")] == [2, 1, 0]


def test_flags_are_asked_for_where_a_qos_is_given(cluster: Stubs) -> None:
    assert read_facts(Resources(qos="long")).qos_flags == frozenset({"PartitionTimeLimit"})


def test_a_refusal_lists_every_reason(cluster: Stubs) -> None:
    preflight(Resources(nodes=4))
    with pytest.raises(SlurmRefused) as refusal:
        preflight(Resources(nodes=5, time="2-0"))
    assert str(refusal.value) == (
        "This cluster cannot run it (nothing was submitted):\n"
        "  - time 2-00:00:00 is above MaxTime 1-00:00:00 of partition main\n"
        "  - 5 nodes, but partition main has 4"
    )


def test_an_account_may_be_below_an_allowed_one_in_newer_versions() -> None:
    assert not _reasons(replace(FACTS, has_subaccounts=True), partition="small", account="optics")
    assert _reasons(partition="small", account="optics")


@pytest.mark.parametrize("version, counts", [("22.05.8", False), ("23.02.1", True), ("25.11.0", True)])
def test_version_says_whether_accounts_below_an_allowed_one_count(
    cluster: Stubs, version: str, counts: bool
) -> None:
    cluster.answers("scontrol", (RECORDED / "config.txt").read_text().replace("22.05.8", version))
    assert read_facts(Resources()).has_subaccounts == counts
