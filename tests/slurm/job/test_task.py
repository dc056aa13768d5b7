"""One task of the job: a path in a pickle, a rank when it runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

import toolkit.training
from slurm.job.requeue import requeue_or_chain
from slurm.job.stop_signals import JobStop
from slurm.job.task import TrainJob, run_rank
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import User
from toolkit.errors import RunFailed, SchedulerError, UserError
from toolkit.run.failure.records import failure_record, write_first
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World

RANKS = [World(rank=rank, size=2, local_rank=rank, local_size=2) for rank in range(2)]


@pytest.fixture
def worker(handlers: None, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A worker without torch; `is_finished` is what its training comes to."""
    stand_in = SimpleNamespace(is_finished=True, seen=[])

    def run(run: RunDir, world: World, stop: JobStop) -> SimpleNamespace:
        stand_in.seen.append((run, world))
        if stop.watch is not None:
            # Or its thread would still ask in the next test.
            stop.watch.wait()
        signal.raise_signal(signal.SIGUSR2)
        return SimpleNamespace(is_finished=stand_in.is_finished)

    stand_in.run_attempt = run
    monkeypatch.setitem(sys.modules, "toolkit.training.worker", stand_in)
    monkeypatch.setattr(toolkit.training, "worker", stand_in, raising=False)
    return stand_in


@pytest.fixture
def in_job(fake: FakeSlurm, user: User, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.delenv("SLURM_ARRAY_JOB_ID", raising=False)
    fake.answers("--all show job 12", "JobId=12\n   PreemptTime=None\n")
    return fake


def test_finished_rank_exits_with_0(worker: SimpleNamespace, in_job: FakeSlurm, run: RunDir) -> None:
    assert [run_rank(run, rank) for rank in RANKS] == [0, 0]
    assert worker.seen == [(run, rank) for rank in RANKS]
    assert not any("requeue" in call for call in in_job.calls("scontrol"))


def test_rank_does_not_train_with_the_installed_code_if_the_runs_own_is_lost(
    worker: SimpleNamespace, in_job: FakeSlurm, run: RunDir
) -> None:
    for file in (run.code / "toolkit").rglob("*.py"):
        file.unlink()
    with pytest.raises(UserError, match="lost files"):
        run_rank(run, RANKS[1])
    assert not worker.seen
    assert "lost files" in run.failure.read_text()


def test_only_rank_0_requeues_and_exits_with_75(
    worker: SimpleNamespace, in_job: FakeSlurm, run: RunDir
) -> None:
    """srun would kill rank 0 if another rank exited with such a status before it."""
    worker.is_finished = False
    assert run_rank(run, RANKS[1]) == 0
    assert in_job.calls("scontrol") == []
    assert run_rank(run, RANKS[0]) == 75
    assert ["requeue", "12"] in in_job.calls("scontrol")


def test_failed_requeue_exits_with_75_and_logs_the_reason(
    worker: SimpleNamespace,
    in_job: FakeSlurm,
    run: RunDir,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The batch script tries again."""
    monkeypatch.setattr("slurm.job.task.requeue_or_chain", partial(requeue_or_chain, patience_s=0.0))
    in_job.goes_away()
    worker.is_finished = False
    assert run_rank(run, RANKS[0]) == 75
    assert "Unable to contact slurm controller" in caplog.text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR2])
def test_signal_while_torch_is_imported_is_a_reason_to_stop(
    worker: SimpleNamespace, fake: FakeSlurm, run: RunDir, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    reasons = []

    def slow_import(kind: str) -> object:
        signal.raise_signal(number)
        return lambda run, world, stop: reasons.append(stop.reason_to_stop()) or worker

    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setattr("slurm.job.task.worker_of", slow_import)
    worker.is_finished = False
    assert run_rank(run, RANKS[1]) == 75
    assert reasons == [signal.Signals(number).name]


#: In place of submitit: what asks a task to stop before the run's code has been imported.
_SUBMITIT = """
import os, signal
def submitit_main():
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        os.kill(os.getpid(), number)
    from slurm.job.stop_signals import JobStop
    print(sorted(name for name, _ in JobStop().install().signals))
"""


def test_signal_before_the_code_of_the_run_is_imported_is_not_lost(tmp_path: Path) -> None:
    module = tmp_path / "submitit" / "core" / "submission.py"
    module.parent.mkdir(parents=True)
    for folder in (module.parent, module.parent.parent):
        (folder / "__init__.py").touch()
    module.write_text(_SUBMITIT)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, "-u", "-m", "slurm.job.start_task", "submitit"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "['SIGTERM', 'SIGUSR1', 'SIGUSR2']\n"), done.stderr


def test_finished_run_is_left_without_training(
    worker: SimpleNamespace, in_job: FakeSlurm, run: RunDir
) -> None:
    run.result.write_text("{}")
    assert [run_rank(run, rank) for rank in RANKS] == [0, 0]
    assert worker.seen == []
    assert in_job.calls("scontrol") == []


def test_slurm_is_not_asked_outside_a_job(
    worker: SimpleNamespace, fake: FakeSlurm, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    worker.is_finished = False
    assert [run_rank(run, rank) for rank in RANKS] == [75, 75]
    assert fake.calls("scontrol") == []


def test_train_job_outside_a_step_raises_scheduler_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(SchedulerError, match="not a task of an srun step"):
        TrainJob("/scratch/me/tiny-1")()


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_failed_rank_ends_its_log_with_the_failure_and_no_stack_trace(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_recorded: bool
) -> None:
    world = World.single()

    def fail(*_: object) -> int:
        if is_recorded:
            place = {"rank": 0, "host": "a", "phase": "program", "step": None}
            write_first(run, failure_record(world.nonce, "exception", "no labels", **place))
        raise RunFailed("no labels")

    monkeypatch.setattr("slurm.job.task.world_from_step", lambda environ: world)
    monkeypatch.setattr("slurm.job.task.run_rank", fail)
    monkeypatch.setattr("slurm.job.task.exit_process", sys.exit)
    with pytest.raises(SystemExit) as ended:
        TrainJob(str(run.path))()
    assert ended.value.code == RunFailed.exit_code
    said = capsys.readouterr().err
    assert said.startswith("error: no labels\n")
    assert ("what to do" in said) == is_recorded
