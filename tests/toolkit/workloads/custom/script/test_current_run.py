"""A user's training script that calls its run: stopped or killed."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from toolkit.exit_codes import ExitCode
from toolkit.files import read_json
from toolkit.run.attempts.goodput import timeline
from toolkit.run.attempts.records import read_attempts
from toolkit.run.run_dir import RunDir

from .interrupted import (
    ALL_STEPS,
    STEP,
    TOTAL,
    Interrupted,
    assert_goes_on_after_a_kill,
    logged_steps,
    weights,
)
from .training_scripts import PLAIN


@pytest.fixture
def script(tmp_path: Path) -> Interrupted:
    return Interrupted(tmp_path, PLAIN)


def test_stopped_and_resumed_script_ends_with_the_same_weights(script: Interrupted) -> None:
    expected = script.undisturbed(1)
    run = script.stopped(1)
    assert run.checkpoint_steps() == [5, STEP]
    rows = json.loads(script.stk("status", "--json").stdout)
    (row,) = (row for row in rows if row["run_id"] == run.run_id)
    assert (row["step"], row["total_steps"], row["state"]) == (STEP, TOTAL, "cancelled")
    assert script.train(1) == expected
    assert logged_steps(run) == ALL_STEPS
    first, second = read_attempts(run)
    assert (first.first_step, first.last_step, first.saved, first.resumed) == (0, STEP, True, False)
    assert (second.first_step, second.last_step, second.resumed) == (STEP, TOTAL, True)
    result = read_json(run.result)
    assert result["step"] == TOTAL
    assert result["metrics"]["validation"] == {"accuracy": 0.5}
    assert result["metrics"]["train"]["loss"] > 0
    spent = [each.spent for each in timeline(run, time.time())]
    assert all(each.training > 0 and each.starting > 0 and each.repeated == 0 for each in spent)
    assert spent[0].saving > 0
    assert "accuracy" in script.stk("report", run.run_id).stdout


@pytest.mark.slow
def test_killed_rank_repeats_the_steps_since_the_last_checkpoint(script: Interrupted) -> None:
    run = assert_goes_on_after_a_kill(script, 2, saved=5)
    assert read_attempts(run)[0].last_step == STEP
    assert timeline(run, time.time())[0].spent.repeated > 0


@pytest.mark.slow
def test_script_stops_and_resumes_without_stk(script: Interrupted) -> None:
    expected = script.undisturbed(1)
    (script.work / "hold").touch()
    command = [sys.executable, "train.py"]
    assert script.stop(script.start(command)) == 75
    assert script.alone(command) == expected
    alone = RunDir(script.work.parent / "runs" / "alone" / "train")
    assert alone.checkpoint_steps() == [STEP, 10]
    assert logged_steps(alone) == ALL_STEPS


@pytest.mark.slow
def test_under_torchrun_without_stk_all_ranks_stop_together(script: Interrupted) -> None:
    expected = script.undisturbed(2)
    asks = "latest = run.latest_checkpoint()\n"
    # Without stk the ranks can ask each other only once they have formed a group.
    late = PLAIN.replace(asks, "").replace("torch.manual_seed(0)\n", f"torch.manual_seed(0)\n{asks}")
    (script.work / "train.py").write_text(late)
    (script.work / "hold").touch()
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "train.py"]
    script.stop(script.start(command))
    assert script.alone(command) == expected


@pytest.mark.slow
def test_torchrun_may_start_the_ranks_of_a_run(script: Interrupted) -> None:
    expected = script.undisturbed(2)
    (script.work / "hold").touch()
    words = ("run", "--", "torchrun", "--nproc-per-node", "2", "train.py")
    assert script.stop(script.start([sys.executable, "-P", "-m", "slurm", *words])) == 130
    assert script.run.checkpoint_steps() == [5, STEP]
    assert weights(script.stk(*words).stdout) == expected
    assert logged_steps(script.run) == ALL_STEPS


@pytest.mark.slow
def test_failure_is_recorded_with_its_class_and_step(script: Interrupted) -> None:
    failing = "run.log(step=3, loss=1); raise ValueError('the 7th row')"
    (script.work / "train.py").write_text(f"import stk\nrun = stk.current_run()\n{failing}\n")
    assert script.stk("run", "--", sys.executable, "train.py").returncode == ExitCode.FAILED
    failure = read_json(script.run.failure)
    assert (failure["class"], failure["step"]) == ("exception", 3)
    assert read_attempts(script.run)[-1].why == "exception"
