"""The commands of spelling are suggested for misspelt names, and completed by the shell."""

from __future__ import annotations

import pytest

from tests.slurm.support.user import User
from toolkit.run.create_run import create_run


def offered(user: User, *words: str) -> list[str]:
    """Return what the shell offers instead of the last word."""
    lines = user.stk("completion", "--candidates", *words).out.splitlines()
    return [line.partition("\t")[0] for line in lines]


def test_a_misspelt_command_is_suggested(user: User) -> None:
    answer = user.stk("detcet")
    assert (answer.code, answer.out) == (2, "")
    assert "did you mean detect?" in answer.err


@pytest.mark.parametrize(
    "words, found",
    [
        (["det"], ["detect"]),
        (["spelling", "b"], ["benchmark"]),
        (["spelling", "tokenizer", "b"], ["bpe", "bytes"]),
        (["correct", "--sea"], ["--search"]),
        (["evaluate", "--kind", "sed_s"], ["sed_sequence"]),
    ],
)
def test_commands_actions_options_and_choices_are_completed(
    user: User, words: list[str], found: list[str]
) -> None:
    assert offered(user, *words) == found


def test_runs_are_completed(user: User) -> None:
    run = create_run(user.experiment(), user.experiments)
    assert offered(user, "detect", "ti") == [run.run_id]
