"""Two commands set the same run aside at the same moment: one starts anew, and no run is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from filelock import FileLock

from slurm.status.submissions import exclusively
from slurm.submission import submit
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import User
from tests.support.patience import PATIENCE_S
from toolkit.config.schema import Experiment
from toolkit.errors import RunBusy
from toolkit.files import write_json
from toolkit.run.create_run import create_run, fill_run
from toolkit.run.run_dir import RunDir, archive_run, archived_runs


@pytest.fixture
def finished(run: RunDir) -> RunDir:
    write_json(run.result, {"step": 4, "epoch": 1, "metrics": {}})
    return run


def test_lock_of_a_folder_that_is_set_aside_meanwhile_is_refused(
    user: User, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command waits for the file that another one holds, and which moves away with its folder."""
    acquire = FileLock.acquire

    def acquire_late(lock: FileLock, timeout: float) -> object:
        found = acquire(lock, timeout=timeout)
        archive_run(run)
        create_run(user.experiment(), user.experiments)
        return found

    monkeypatch.setattr(FileLock, "acquire", acquire_late)
    with pytest.raises(RunBusy, match="aside"), exclusively(run):
        pytest.fail("the lock is that of the old folder")
    monkeypatch.undo()
    with exclusively(run):
        pass


def test_lock_of_a_folder_that_is_removed_meanwhile_is_refused(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    def acquire(lock: FileLock, timeout: float) -> object:
        raise FileNotFoundError(2, "No such file or directory", lock.lock_file)

    monkeypatch.setattr(FileLock, "acquire", acquire)
    with pytest.raises(RunBusy), exclusively(run):
        pytest.fail("there is no lock")


def test_folder_is_set_aside_only_once_the_new_one_is_complete(
    user: User, finished: RunDir, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(run: RunDir, experiment: Experiment, **options: RunDir) -> bool:
        assert finished.result.exists()
        return fill_run(run, experiment, **options)

    def set_aside(run: RunDir) -> Path:
        (code,) = user.experiments.glob(f".*/{run.run_id}/code")
        assert code.is_dir()
        return archive_run(run)

    monkeypatch.setattr(submit, "fill_run", fill)
    monkeypatch.setattr(submit, "archive_run", set_aside)
    assert user.stk("submit", user.config, "--fresh").code == 0
    assert user.job_ids == ["101"]
    (old,) = archived_runs(user.experiments)
    assert old.result.exists()
    assert {each.name for each in user.experiments.iterdir()} == {finished.run_id, "old"}


def test_fresh_start_leaves_a_folder_that_another_command_makes_meanwhile(
    user: User, finished: RunDir, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def set_aside(run: RunDir) -> Path:
        old = archive_run(run)
        create_run(user.experiment(), user.experiments)
        run.artifacts.mkdir()
        return old

    monkeypatch.setattr(submit, "archive_run", set_aside)
    assert user.stk("submit", user.config, "--fresh").code == RunBusy.exit_code
    assert fake.jobs == []
    assert finished.artifacts.exists()
    (old,) = archived_runs(user.experiments)
    assert old.result.exists()


def test_one_of_two_fresh_starts_at_once_begins_and_keeps_the_old_run(
    user: User, finished: RunDir, fake: FakeSlurm
) -> None:
    both = [user.start("submit", user.config, "--fresh", "--json") for _ in range(2)]
    answers = [(*each.communicate(timeout=PATIENCE_S), each.returncode) for each in both]
    (begun, _, done), (_, told, refused) = sorted(answers, key=lambda answer: answer[2])
    assert (done, refused) == (0, RunBusy.exit_code), answers
    assert told.startswith("error: ")
    assert json.loads(begun)["state"] == "pending"
    assert len(fake.jobs) == 1
    (old,) = archived_runs(user.experiments)
    assert old.result.exists()
