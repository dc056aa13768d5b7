"""What could stand next on the command line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm.commands.completion.candidates import candidates
from slurm.commands.completion.keys import keys
from slurm.commands.parser import make_parser
from tests.slurm.support.user import User
from toolkit.run.run_dir import RunDir

PARSER = make_parser()


def words(*typed: str) -> list[str]:
    """The words that are offered in place of the last one."""
    return [each.word for each in candidates(PARSER, typed)]


def test_commands_are_offered_first_with_their_help() -> None:
    found = {each.word: each.help for each in candidates(PARSER, [""])}
    assert all(found.values())
    assert set(found) >= {"plan", "submit", "clean", "reproduce", "completion"}


def test_only_words_with_the_typed_prefix_are_offered() -> None:
    assert words("stat") == ["status"]
    assert words("") == words()


def test_options_of_the_command_are_offered() -> None:
    assert words("clean", "--o") == ["--older-than", "--old"]
    assert "--json" in words("status", "--")


def test_choices_of_an_option_are_offered() -> None:
    assert words("submit", "a.yaml", "--cluster", "") == ["auto", "slurm", "local"]
    assert words("completion", "") == ["bash", "zsh", "fish"]


def test_runs_are_offered_where_a_run_is_named(user: User, run: RunDir) -> None:
    assert words("status", "") == [run.run_id]
    assert words("diff", run.run_id, "ti") == [run.run_id]
    assert words("status", "other") == []


def test_files_are_left_to_the_shell() -> None:
    assert words("submit", "") == [":files"]
    assert words("submit", "a.yaml", "--then", "") == [":files"]
    assert words("status", "experiments/") == [":files"]


def test_keys_are_offered_after_the_experiment_file() -> None:
    assert words("submit", "a.yaml", "resources.nodes") == ["resources.nodes="]
    assert words("submit", "a.yaml", "seed=1", "optimizer.l") == ["optimizer.lr="]
    assert words("submit", "a.yaml", "--then", "b.yaml", "resources.requeue=s") == [
        "resources.requeue=same_job"
    ]
    assert words("sweep", "a.yaml", "train.deterministic=") == [
        "train.deterministic=true", "train.deterministic=false",
    ]  # fmt: skip


def test_keys_of_every_kind_are_known() -> None:
    known = keys(())
    assert {"seed", "name", "resources.gres", "model.kernels", "data.path", "task.kind"} <= known.keys()
    assert "toy_texts" in known["task.kind"]
    assert "convolutions" in known["model.kind"]


def test_keys_after_a_valid_experiment_are_those_of_its_task(user: User) -> None:
    points = user.write("points.txt", "1 2\n")
    text = f"name: a\ntask: {{kind: toy_points}}\nmodel: {{kind: line}}\ndata: {{path: {points}}}\n"
    config = str(user.write("points.yaml", text))
    for more in ([], ["train.epochs=2", "--dry-run"], ["sweep.seeds=[1,2]"], ["optimizer.lr=1e-3,1e-4"]):
        assert words("run", config, *more, "model.") == ["model.dropout=", "model.hidden=", "model.kind="]
    assert words("run", config, "model.kind=none", "model.kern") == ["model.kernels="]


def test_value_of_an_option_does_not_change_what_is_offered_next() -> None:
    assert words("submit", "--cluster", "local", "") == [":files"]
    assert words("logs", "--rank", "3", "--fo") == ["--follow"]
    assert words("logs", "--rank", "") == []


@pytest.mark.parametrize("typed", [["nonsense", ""], ["status", "--nonsense", ""], ["plan", "--", "-"]])
def test_unknown_words_cause_no_error(typed: list[str]) -> None:
    assert isinstance(words(*typed), list)


@given(
    st.lists(st.sampled_from(["submit", "clean", "--then", "--", "-", "a=b", "--state", "spelling", "x", ""]))
)
def test_every_offered_word_begins_with_the_typed_word(typed: list[str]) -> None:
    for word in words(*typed):
        assert word == ":files" or word.startswith(typed[-1] if typed else "")
