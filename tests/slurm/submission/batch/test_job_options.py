"""Resources become options of sbatch."""

from __future__ import annotations

from typing import Any

import pytest

from slurm.config.resources import Group, Resources
from slurm.config.world_size import world_size
from slurm.submission.batch.job_options import components
from toolkit.errors import UserError


def options(**fields: object) -> dict[str, object]:
    (part,) = components(Resources(**fields))
    return dict(part.options)


@pytest.mark.parametrize(
    "fields",
    [{"gres": "gpu:2"}, {"gres": "tmpdisk:1,gpu:a100:2"}, {"gpus_per_node": "2"}, {"gpus_per_task": "1"}],
)
def test_a_rank_on_a_gpu_has_cpus_for_all_its_threads(fields: dict[str, Any]) -> None:
    assert options(**fields)["cpus-per-task"] == 4
    assert options(cpus_per_task=2, **fields)["cpus-per-task"] == 2
    assert Resources(**fields).cpus_of_rank(on_gpu=None) == 4


def test_cpus_per_task_is_not_added_beside_cpus_per_gpu_or_without_gpus() -> None:
    assert "cpus-per-task" not in options(gres="gpu:2", sbatch={"cpus-per-gpu": 6})
    assert "cpus-per-task" not in options(gres="tmpdisk:5")


@pytest.mark.parametrize(
    "given, asked, step",
    [
        ({}, {}, {"ntasks-per-node": 1, "cpus-per-task": 1}),
        (
            {"gres": "gpu:4"},
            {"gres": "gpu:4", "cpus-per-task": 4},
            {"ntasks-per-node": 1, "cpus-per-task": 4},
        ),
        (
            {"gres": "gpu:4", "cpus_per_task": 1},
            {"gres": "gpu:4", "cpus-per-task": 1},
            {"ntasks-per-node": 1, "cpus-per-task": 1},
        ),
        ({"tasks_per_node": 4}, {"cpus-per-task": 4}, {"ntasks-per-node": 4, "cpus-per-task": 1}),
        (
            {"tasks_per_node": 4, "cpus_per_task": 3, "gpus_per_task": "a100:2"},
            {"cpus-per-task": 12, "gpus-per-node": "a100:8"},
            {"ntasks-per-node": 4, "cpus-per-task": 3, "gpus-per-task": "a100:2"},
        ),
    ],
)
def test_with_a_range_of_hosts_the_job_asks_for_hosts_and_the_step_for_tasks(
    given: dict[str, object], asked: dict[str, object], step: dict[str, object]
) -> None:
    """Told of tasks, sbatch would take no more hosts than the fewest tasks need (measured)."""
    (part,) = components(Resources(nodes="1-4", **given))
    assert part.options == {"nodes": "1-4", **asked}
    assert part.step_options == step


def test_gpus_per_task_that_cannot_be_counted_are_refused() -> None:
    with pytest.raises(UserError, match="gpus-per-task is 'many', expected a whole number"):
        components(Resources(nodes="1-4", gpus_per_task="a100:many"))


@pytest.mark.parametrize("name", ["mem", "mail_type", "time"])
def test_an_option_that_has_a_key_is_refused_with_that_key(name: str) -> None:
    with pytest.raises(UserError, match=f"use resources.{name}"):
        options(sbatch={name: "5"})


def test_kill_on_invalid_dep_is_the_default_with_a_dependency() -> None:
    assert options(dependency="afterok:12")["kill-on-invalid-dep"] == "yes"
    told = {"kill-on-invalid-dep": "no"}
    assert options(dependency="afterok:12", sbatch=told)["kill-on-invalid-dep"] == "no"
    assert "kill-on-invalid-dep" not in options()


@pytest.mark.parametrize("nothing", [None, False])
def test_null_or_false_removes_an_option(nothing: object) -> None:
    told = {"kill-on-invalid-dep": nothing}
    assert "kill-on-invalid-dep" not in options(dependency="afterok:12", sbatch=told)


def test_zero_is_kept_as_a_value() -> None:
    assert options(sbatch={"nice": 0})["nice"] == 0


def test_options_of_the_whole_job_are_only_in_the_first_component() -> None:
    resources = Resources(
        groups=(Group(nodes=1, gpus=1), Group(nodes=1, gpus=2)),
        dependency="afterok:12",
        mail_user="me",
        mail_type="END",
        comment="x",
        licenses="l",
        account="lab",
    )
    first, second = components(resources)
    whole = {"dependency", "mail-user", "mail-type", "comment", "licenses"}
    assert whole <= set(first.options)
    assert not whole & set(second.options)
    assert second.options["account"] == "lab"


def test_each_named_host_becomes_a_component_in_its_order() -> None:
    resources = Resources(hosts={"node7": 3, "node2": 1, "node5": 0}, mem="8G", comment="x")
    parts = components(resources)
    assert [part.options["nodelist"] for part in parts] == ["node7", "node2", "node5"]
    assert [part.options.get("gres") for part in parts] == ["gpu:3", "gpu:1", None]
    assert [part.tasks_per_node for part in parts] == [3, 1, 1]
    assert {(part.options["nodes"], part.options["mem"]) for part in parts} == {(1, "8G")}
    assert [part.options.get("comment") for part in parts] == ["x", None, None]
    assert world_size(resources) == 5


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_localhost_is_refused_as_a_host_of_a_job(name: str) -> None:
    with pytest.raises(UserError, match=f"resources.hosts has {name}, .* `sinfo -N` shows"):
        components(Resources(hosts={"node1": 1, name: 1}))
