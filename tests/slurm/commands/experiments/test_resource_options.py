"""`--nodes 2` in place of `resources.nodes=2`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from slurm.commands.parser import make_parser
from tests.slurm.support.user import User


def _planned(user: User, *words: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(user.stk("plan", user.config, "--json", *words).out)
    resources: dict[str, Any] = facts["config"]["resources"]
    return resources


def test_an_option_sets_the_key_of_its_name(user: User) -> None:
    found = _planned(user, "--nodes", "2", "--tasks-per-node=4", "--time", "4:00:00", "--exclusive")
    wanted = {"nodes": 2, "tasks_per_node": 4, "time": "4:00:00", "exclusive": True}
    assert {key: found[key] for key in wanted} == wanted


@pytest.mark.parametrize("text", ["a, b: c", 'it\'s "so"', "null", "# 1", "true"])
def test_option_text_is_taken_literally(user: User, text: str) -> None:
    assert _planned(user, "--comment", text)["comment"] == text


def test_comma_in_an_option_does_not_make_a_sweep(user: User) -> None:
    shown = user.stk("sweep", user.config, "seed=1,2", "--nodelist", "c1,c2", "--dry-run", "--json")
    assert len(json.loads(shown.out)["runs"]) == 2


@pytest.mark.parametrize(
    "option, value, key",
    [
        ("--nodes", "2", "resources.nodes=3"),
        ("--nodes", "2", "resources.nodes=1,3"),
        ("--time", "1:00:00", "resources.time=61"),
        ("--time", "1:00:00", "resources.time=long"),
        ("--mem", "1G", "resources.mem=1000"),
    ],
)
def test_an_option_and_a_key_with_another_value_are_refused(
    user: User, option: str, value: str, key: str
) -> None:
    for words in ([key, option, value], [option, value, key]):
        assert f"{option} and {key}" in user.refused("sweep", user.config, *words, "--dry-run")


def test_an_option_and_a_key_may_have_the_same_value(user: User) -> None:
    same = ["--nodes", "2", "resources.nodes=2", "--time", "1:00:00", "resources.time=1:00:00", "--exclusive"]
    found = _planned(user, *same, "resources.exclusive=true")
    assert (found["nodes"], found["time"], found["exclusive"]) == (2, "1:00:00", True)


@pytest.mark.parametrize(
    "words",
    [
        ["--nodes", "2", 'resources.nodes="2"'],
        ["--nodes", "1", "--nodes", "2", "resources.nodes=3", " resources.nodes = 2"],
        ["--nodes", "2", "resources.nodes=${resources.tasks_per_node}", "resources.tasks_per_node=2"],
        ["--nodes", "2", "--mem", "4G", "resources.mem='4G'"],
        ["--nodes", "2", "--time", "60", "resources.time=60"],
        ["--nodes", "2", "--time", "1:00:00", "resources.time=60"],
        ["--nodes", "2", "--mem", "1G", "resources.mem=1024"],
        ["--nodes", "2", "--mem-per-cpu", "2048", "resources.mem_per_cpu=2g"],
        ["--nodes", "2", "--comment", "${name}", "resources.comment=movies"],
        ["--nodes", "2", "--exclusive", "resources.exclusive=True"],
    ],
)
def test_the_last_values_are_compared_and_not_their_spelling(user: User, words: list[str]) -> None:
    assert _planned(user, *words)["nodes"] == 2


def test_an_override_with_a_fault_is_reported_as_such(user: User) -> None:
    said = user.refused("plan", user.config, "--nodes", "2", "resources.nodes=[2")
    assert "leave one of them out" not in said


def test_an_option_changes_a_key_of_a_section_that_is_set_as_a_whole(user: User) -> None:
    found = _planned(user, "resources={nodes: 3, comment: a}", "--nodes", "2")
    assert (found["nodes"], found["comment"]) == (2, "a")


def test_a_wrong_value_is_refused_as_in_the_file(user: User) -> None:
    assert "resources.nodes" in user.refused("plan", user.config, "--nodes", "many")


def test_options_of_the_command_itself_keep_their_meaning() -> None:
    parsed = make_parser(["run"]).parse_args(["run", "x.yaml", "--gpus-per-node", "3,1", "--world-size", "4"])
    assert (parsed.gpus_per_node, parsed.world_size, parsed.resource_overrides) == ("3,1", 4, [])
