"""A run folder is created once, from the current experiment and code."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.toolkit.support.ranks import in_ranks
from tests.toolkit.support.tiny import tiny
from toolkit.config import Experiment, load_resolved, run_id
from toolkit.errors import UserError
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir, archive_run, experiment_dir
from toolkit.system.world import World


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    return tiny(tmp_path / "data")


def create(world: World, experiment: Experiment, parent: Path) -> str:
    return create_run(experiment, parent).run_id


def test_second_creation_returns_the_existing_run_unchanged(experiment: Experiment, tmp_path: Path) -> None:
    run = create_run(experiment, tmp_path)
    (run.code / "toolkit" / "training" / "worker.py").write_text("# as it was when the run began\n")
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}
    assert create_run(experiment, tmp_path) == run
    assert {path: path.stat().st_mtime_ns for path in run.path.rglob("*")} == before


def test_concurrent_processes_create_one_run_folder_with_the_experiment_and_the_code(
    experiment: Experiment, tmp_path: Path
) -> None:
    assert in_ranks(4, create, experiment, tmp_path / "runs") == [run_id(experiment)] * 4
    run = create_run(experiment, tmp_path / "runs")
    assert run.path == tmp_path / "runs" / run_id(experiment)
    assert load_resolved(run.config) == experiment
    assert sorted(path.name for path in run.path.iterdir()) == ["code", "config.yaml", "logs"]
    for path in (each.relative_to(Path.cwd()) for each in Path.cwd().glob("toolkit/*.py")):
        assert (run.code / path).read_bytes() == path.read_bytes()
    assert not list(run.code.rglob("*.pyc"))


@pytest.mark.parametrize("meanwhile", ["nothing", "replaced", "locked", "trained"])
def test_folder_that_cannot_be_filled_is_removed_unless_another_command_uses_it(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    def fail(run: RunDir, *_: object) -> None:
        if meanwhile == "replaced":
            archive_run(run)
            run.path.mkdir()
        elif meanwhile != "nothing":
            (run.lock if meanwhile == "locked" else run.alive).touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("toolkit.run.create_run.keep_code", fail)
    with pytest.raises(UserError, match="cannot write the run folder"):
        create_run(experiment, tmp_path / "runs")
    assert (tmp_path / "runs" / run_id(experiment)).exists() == (meanwhile != "nothing")


@pytest.mark.parametrize(
    "number, is_named", [(errno.ENOSPC, False), (errno.EDQUOT, False), (errno.ENOENT, True)]
)
def test_source_file_is_named_if_it_is_missing_but_not_if_the_disk_of_the_run_is_full(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_named: bool
) -> None:
    source = "/elsewhere/toolkit/task.py"

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number), source)

    monkeypatch.setattr("toolkit.run.create_run.keep_code", fail)
    with pytest.raises(UserError) as error:
        create_run(experiment, tmp_path / "runs")
    assert os.strerror(number) in str(error.value)
    assert (source in str(error.value)) == is_named


def test_edited_config_is_refused(experiment: Experiment, tmp_path: Path) -> None:
    run = create_run(experiment, tmp_path)
    run.config.write_text(run.config.read_text().replace("epochs: 2", "epochs: 3"))
    with pytest.raises(UserError, match="it was edited"):
        create_run(experiment, tmp_path)


def test_runs_are_in_the_folder_of_the_variable_or_below_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STK_EXPERIMENT_DIR", raising=False)
    assert experiment_dir() == tmp_path / "experiments"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for given, found in (("elsewhere", "elsewhere"), ("~/runs", "home/runs")):
        monkeypatch.setenv("STK_EXPERIMENT_DIR", given)
        assert experiment_dir() == tmp_path / found
