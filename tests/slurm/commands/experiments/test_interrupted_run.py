"""Ctrl-C before a run begins: nothing of it stays, and `--fresh` brings the earlier run back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from slurm.commands.experiments import run as command
from slurm.submission import submit
from tests.slurm.support.user import User
from toolkit.run.create_run import create_run
from toolkit.run.kept_code import code_snapshot
from toolkit.run.run_dir import RunDir
from toolkit.system.output.json_text import json_text

_HERE = ("submit", "--cluster", "local")


@pytest.fixture(autouse=True)
def without_slurm(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")


def interrupted_copy(target: Path, *_: object) -> None:
    (target / "toolkit").mkdir(parents=True)
    raise KeyboardInterrupt


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def in_the_copy(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(code_snapshot, "copy_code", interrupted_copy)


def before_the_ranks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(command, "_launch", interrupt)
    patch.setattr(submit, "reset_counters", interrupt)


@pytest.mark.parametrize("words", [("run",), _HERE])
@pytest.mark.parametrize("moment", [in_the_copy, before_the_ranks])
def test_an_interrupted_start_leaves_no_folder(
    user: User, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], moment: Callable[..., None]
) -> None:
    moment(monkeypatch)
    answer = user.stk(*words, user.config)
    assert answer.code == 130
    assert list(user.experiments.iterdir()) == []
    assert ("interrupted" in answer.err) == (words == ("run",))


@pytest.mark.parametrize("words", [("run",), _HERE])
@pytest.mark.parametrize("moment", [in_the_copy, before_the_ranks])
def test_an_interrupted_fresh_start_brings_the_run_back(
    user: User, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], moment: Callable[..., None]
) -> None:
    run = create_run(user.experiment(), user.experiments)
    run.result.write_text(json_text({"state": "finished"}))
    moment(monkeypatch)
    assert user.stk(*words, user.config, "--fresh").code == 130
    assert run.result.exists()
    assert list((user.experiments / "old").iterdir()) == []


def by_another_code(run: RunDir) -> None:
    run.code.mkdir()


def by_another_copy(run: RunDir) -> None:
    (run.path / ".code.0123.tmp").mkdir()


def by_another_lock(run: RunDir) -> None:
    run.lock.touch()


@pytest.mark.parametrize("joined", [by_another_code, by_another_copy, by_another_lock])
def test_a_folder_that_another_command_has_found_stays(
    user: User, monkeypatch: pytest.MonkeyPatch, joined: Callable[[RunDir], None]
) -> None:
    def copied(target: Path, *_: object) -> None:
        joined(user.run())
        interrupted_copy(target)

    monkeypatch.setattr(code_snapshot, "copy_code", copied)
    assert user.stk("run", user.config).code == 130
    assert user.run().config.exists()
    assert len(list(user.run().path.glob(".code.*.tmp"))) == (joined is by_another_copy)


def test_a_run_that_was_there_keeps_its_folder(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    run = create_run(user.experiment(), user.experiments)
    monkeypatch.setattr(command, "_launch", interrupt)
    assert user.stk("run", user.config).code == 130
    assert run.code.exists()


def test_a_launcher_that_was_started_keeps_the_folder(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """It outlives the command, which could not record it."""
    monkeypatch.setattr(submit, "start_detached", interrupt)
    assert user.stk(*_HERE, user.config).code == 130
    assert user.run().code.exists()
