"""Hosts with their numbers of GPUs: in the experiment, or in a JSON file; errors in them are reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slurm.config.world_size import world_size
from toolkit.config import load, load_resolved, to_yaml
from toolkit.config.identity import identity
from toolkit.config.schema import Experiment
from toolkit.errors import Fault

Good = Callable[..., Experiment]
Faults = Callable[..., list[Fault]]
HOSTS = {"node-b": 3, "node-a": 0, "node-c": 2}


@pytest.fixture
def world(write: Callable[[str, str], Path]) -> Path:
    return write("world.json", json.dumps(HOSTS))


@pytest.mark.parametrize("value", ["world.json", "{node-b: 3, node-a: 0, node-c: 2}"])
def test_hosts_of_an_experiment_or_a_json_file_keep_their_order(
    movies: Path, world: Path, value: str
) -> None:
    experiment = load(movies, [f"resources.hosts={value}", "resources.tasks_per_node=1", "train.device=cpu"])
    assert list(experiment.resources.hosts.items()) == list(HOSTS.items())
    # One process for each GPU, one where there is none.
    assert world_size(experiment.resources) == 6


def test_stored_run_keeps_its_hosts_without_the_json_file(tmp_path: Path, movies: Path, world: Path) -> None:
    changes = ["resources.tasks_per_node=1", "train.device=cpu"]
    experiment = load(movies, [*changes, "resources.hosts=world.json"])
    assert identity(experiment) == identity(load(movies, changes))
    world.unlink()
    (tmp_path / "config.yaml").write_text(to_yaml(experiment))
    (tmp_path / "job.yaml").write_text(to_yaml(experiment.resources))
    stored = load_resolved(tmp_path / "config.yaml", tmp_path / "job.yaml")
    assert list(stored.resources.hosts.items()) == list(HOSTS.items())
    assert stored.resources == experiment.resources


@pytest.mark.parametrize("changes, kept", [(["resources.nodes=2"], "nodes: 2\n"), ([], "{}\n")])
def test_only_non_default_resources_are_stored(
    tmp_path: Path, movies: Path, changes: list[str], kept: str
) -> None:
    """The code that a run keeps may know fewer keys than what submits it again."""
    experiment = load(movies, ["resources={}", *changes])
    (tmp_path / "config.yaml").write_text(to_yaml(load(movies)))
    (tmp_path / "job.yaml").write_text(to_yaml(experiment.resources))
    assert (tmp_path / "job.yaml").read_text() == kept
    stored = load_resolved(tmp_path / "config.yaml", tmp_path / "job.yaml")
    assert stored.resources == experiment.resources


@pytest.mark.parametrize(
    "text, problem",
    [
        ("{", "which is not JSON: Expecting property name"),
        ("", "which is not JSON: Expecting value"),
        ("[3, 1]", "which holds no JSON object"),
        ('{"node-a": 3, "node-a": 1}', "in which 'node-a' is given twice"),
        ("\udcff", "which is not JSON: 'utf-8' codec"),
        ("[" * 100_000, "which is not JSON"),
    ],
)
def test_invalid_hosts_file_is_refused_by_its_name(
    movies: Path, world: Path, faults: Faults, text: str, problem: str
) -> None:
    world.write_text(text, errors="surrogateescape")
    (fault,) = faults(load, movies, ["resources.hosts=world.json", "resources.tasks_per_node=1"])
    assert (fault.key, fault.origin) == ("resources.hosts", "command line")
    assert "'world.json'" in fault.problem
    assert problem in fault.problem


def test_missing_hosts_file_is_refused(movies: Path, faults: Faults) -> None:
    (fault,) = faults(load, movies, ["resources.hosts=wrold.json", "resources.tasks_per_node=1"])
    assert fault.problem == "found 'wrold.json', a file that cannot be read: No such file or directory"


@pytest.mark.parametrize("gpus", [-1, 1.5, "three", None, [1], True])
def test_invalid_number_of_gpus_is_refused_with_its_file_and_host(
    movies: Path, world: Path, faults: Faults, gpus: Any
) -> None:
    world.write_text(json.dumps({"node-b": 3, "node-a": gpus}))
    (fault,) = faults(load, movies, ["resources.hosts=world.json", "resources.tasks_per_node=1"])
    assert (fault.key, fault.origin) == ("resources.hosts.node-a", "world.json")
    assert fault.problem.endswith("expected a whole number of at least 0")


def test_hosts_of_another_type_are_refused(broken: Faults) -> None:
    (fault,) = broken(resources={"hosts": [3, 1]})
    assert "a mapping of names to whole numbers of at least 0, or the name of a JSON file" in fault.problem


@pytest.mark.parametrize(
    "names",
    [
        ("node-a", "NODE-A"),
        ("node-a", "node-a.example.org"),
        ("node-a.example.org", "node-a"),
        ("localhost", "127.0.0.1"),
        ("node-a", "node-b", "node-a."),
    ],
)
def test_host_given_twice_is_refused(broken: Faults, names: tuple[str, ...]) -> None:
    (fault,) = broken(resources={"hosts": dict.fromkeys(names, 1)})
    assert fault.problem == f"{names[0]} and {names[-1]} are the same host"


@pytest.mark.parametrize("name", ["", "node a", "node-a,node-b", "node[1-2]", "-a", "a\n", "ä"])
def test_invalid_host_name_is_refused(broken: Faults, name: str) -> None:
    (fault,) = broken(resources={"hosts": {name: 1}})
    assert fault.problem.endswith("expected the name or the address of a host")


@pytest.mark.parametrize(
    "other", [{"nodes": 2}, {"tasks_per_node": 2}, {"groups": [{"nodes": 1, "gpus": 1}]}, {"nodelist": "a"}]
)
def test_hosts_exclude_other_keys_that_choose_hosts(broken: Faults, other: dict[str, Any]) -> None:
    (fault,) = broken(resources={"hosts": {"node-a": 1}, **other})
    assert fault.key == f"resources.{next(iter(other))}"
    assert "found hosts together with" in fault.problem


def test_hosts_with_and_without_gpus_train_together_only_on_the_cpu(broken: Faults, good: Good) -> None:
    resources = {"hosts": {"node-a": 2, "node-b": 0}}
    (fault,) = broken(resources=resources)
    assert fault.key == "resources.hosts.node-b"
    assert good(resources=resources, train={"device": "cpu"})
    assert good(resources={"hosts": {"node-a": 0, "node-b": 0}})


@pytest.mark.parametrize(
    "resources", [{"hosts": {"a": 3, "b": 1}}, {"groups": [{"nodes": 2, "gpus": 2}]}, {"tasks_per_node": 4}]
)
def test_world_size_variable_must_match_the_resources(
    broken: Faults, good: Good, resources: dict[str, Any]
) -> None:
    (fault,) = broken(resources={**resources, "environment": {"WORLD_SIZE": 5}})
    assert fault.key == "resources.environment.WORLD_SIZE"
    assert fault.problem == "found '5', but the resources make a world of 4 processes"
    assert good(resources={**resources, "environment": {"WORLD_SIZE": 4}})


def test_world_size_variable_may_be_any_of_a_range_of_hosts(broken: Faults, good: Good) -> None:
    assert good(resources={"nodes": "2-4", "environment": {"WORLD_SIZE": 3}})
    assert broken(resources={"nodes": "2-4", "environment": {"WORLD_SIZE": 1}})


def test_text_is_refused_as_a_number_of_gpus(write, broken):
    write("hosts.json", '{"a": "4", "b": 4}')
    for hosts in ("hosts.json", {"a": "4"}):
        (fault,) = broken(resources={"hosts": hosts})
        assert fault.key == "resources.hosts.a"
        assert "'4' (text)" in fault.problem
