"""Folders in the folder of runs whose names hold what a terminal or a shell would act on."""

from __future__ import annotations

import os

import pytest

from tests.slurm.status.folders import new_run
from tests.slurm.support.user import User

NAMES = (b"a\x1b[31mred-00000000", b"a\xff-00000000", b"a$(touch x)-00000000", b"a`touch x`", b"a b;c", b"-a")


@pytest.fixture
def planted(user: User) -> User:
    """A user with one good run, and folders like those of runs with hostile names."""
    user.experiments.mkdir()
    for name in (b"good-00000000", *NAMES):
        new_run(user.experiments, os.fsdecode(name))
    return user


@pytest.mark.parametrize("words", [("report", "zzz"), ("report", "a"), ("status", "a")])
def test_message_with_hostile_names_has_no_escape_characters(planted: User, words: tuple[str, ...]) -> None:
    answer = planted.stk(*words)
    assert "\x1b" not in answer.out + answer.err
    (answer.out + answer.err).encode("utf-8")


def test_status_shows_the_good_run_beside_hostile_names(planted: User) -> None:
    shown = planted.call("status")
    assert (shown.code, "good-00000000" in shown.out, "\x1b" in shown.out) == (0, True, False), shown.err
    assert planted.call("status", "--json").code == 0
    assert planted.call("clean", "--dry-run").code == 0


def test_completion_offers_no_hostile_names(planted: User) -> None:
    offered = planted.stk("completion", "--candidates", "status", "").out
    assert [line.split("\t")[0] for line in offered.splitlines() if line.startswith(("a", "g", "-a"))] == [
        "good-00000000"
    ]
