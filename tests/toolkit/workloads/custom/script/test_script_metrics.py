"""Metrics that a script logs; one process, no torch."""

from __future__ import annotations

import errno
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.workloads.custom.script.interrupted import logged_steps
from tests.toolkit.workloads.custom.script.own_run import save, start
from toolkit.errors import UserError
from toolkit.exit_codes import ExitCode
from toolkit.files import read_json, read_json_lines
from toolkit.run.run_dir import RunDir
from toolkit.workloads.custom.command.recorded import Logged, final, logged
from toolkit.workloads.custom.script import metrics
from toolkit.workloads.custom.script.metrics import MetricsLog, checked
from toolkit.workloads.custom.script.place import Place


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path / "run")


def process_of(run: RunDir, attempt: int = 1) -> MetricsLog:
    """The log of a process of an attempt; 0: without `stk`."""
    if attempt:
        run.path.mkdir(exist_ok=True)
    return MetricsLog(Place(run=run, rank=0, size=1, attempt=attempt))


def shown(run: RunDir) -> Logged:
    """What the first attempt has logged."""
    found = logged(run, 1)
    assert found is not None
    return found


def test_repeated_steps_are_logged_once(run: RunDir) -> None:
    first = start(run)
    for step in range(1, 6):
        first.log(step=step, total=9, loss=1 / step)
        if step == 3:
            save(first, step)
            first.log(step=step, split="validation", accuracy=0.5)
    second = start(run)
    second.latest_checkpoint()
    for step in (4, 5, 6):
        second.log(step=step, total=9, loss=2.0)
    assert logged_steps(run) == [1, 2, 3, 4, 5, 6]
    assert logged_steps(run, "validation") == [3]
    assert [line["loss"] for line in read_json_lines(run.metrics) if line["split"] == "train"][3:] == [
        2.0
    ] * 3
    assert read_json(run.progress) | {"time": 0, "first_step_time": 0} == {
        "time": 0,
        "step": 4,
        "total_steps": 9,
        "epoch": None,
        "attempt": 0,
        "first_step": 3,
        "resumed": True,
        "first_step_time": 0,
        "metrics": {"train_loss": 2.0},
    }


@pytest.mark.parametrize("saved, warnings", [((2, 3), 1), ((200, 201), 0)])
def test_checkpoints_of_earlier_steps_than_the_last_line_are_warned_of_once(
    saved: tuple[int, ...], warnings: int, run: RunDir, caplog: pytest.LogCaptureFixture
) -> None:
    """A script may count steps in its log, and epochs in its checkpoints."""
    script = start(run)
    script.log(step=200, loss=1.0)
    for step in saved:
        save(script, step)
    assert run.checkpoint_steps() == list(saved)
    assert caplog.text.count("run.log(step=200)") == warnings


def test_steps_that_begin_again_are_warned_of_once(run: RunDir, caplog: pytest.LogCaptureFixture) -> None:
    script = start(run)
    for _ in range(3):
        for step in (1, 2):
            script.log(step=step, loss=1.0)
            script.log(step=step, split="validation", loss=1.0)
    assert caplog.text.count("comes after step 2") == 1


def test_models_that_count_their_own_steps_are_not_warned_of(
    run: RunDir, caplog: pytest.LogCaptureFixture
) -> None:
    script = start(run)
    for step in (1, 2):
        script.log(step=5 * step, critic_loss=1.0)
        script.log(step=step, loss=1.0)
        script.log(step=step, split="validation", loss=1.0)
    assert caplog.text == ""


def test_start_from_the_beginning_drops_earlier_metrics(run: RunDir) -> None:
    start(run).log(step=5, loss=1.0)
    again = start(run)
    assert again.latest_checkpoint() is None
    again.log(step=2, loss=1.0)
    assert logged_steps(run) == [2]


def test_logging_an_earlier_step_in_a_new_start_drops_later_steps(run: RunDir) -> None:
    first = start(run)
    for step in (1, 2, 3):
        first.log(step=step, loss=1.0)
    start(run).log(step=2, loss=0.5)
    assert logged_steps(run) == [1, 2]


def test_line_of_step_0_before_the_resume_keeps_the_lines_of_earlier_attempts(run: RunDir) -> None:
    """As `trainer.evaluate()` before `trainer.train()` writes it in each attempt."""
    for first_step in (1, 3):
        script = start(run)
        script.log(step=0, split="validation", accuracy=0.1)
        script.latest_checkpoint()
        for step in (first_step, first_step + 1):
            script.log(step=step, loss=1.0)
        save(script, first_step + 1)
    assert logged_steps(run) == [1, 2, 3, 4]
    assert logged_steps(run, "validation") == [0]
    progress = read_json(run.progress)
    assert (progress["first_step"], progress["resumed"]) == (2, True)


@pytest.mark.parametrize("later", [None, 99])
def test_training_whose_first_line_is_of_step_0_begins_there(later: int | None, run: RunDir) -> None:
    log = process_of(run, attempt=0)
    log.write(checked(0, metrics={"accuracy": 0.1}), None)
    # No earlier attempt has lines to keep.
    assert logged_steps(run) == [0]
    if later:
        log.write(checked(later), None)
        assert logged_steps(run) == [0]
    log.close()
    assert logged_steps(run) == [0]
    progress = read_json(run.progress)
    assert (progress["step"], progress["first_step"], progress["resumed"]) == (later or 0, 0, False)


def test_script_that_logs_only_step_0_keeps_the_lines_of_earlier_attempts(run: RunDir) -> None:
    """It may be stopped, or fail, before it asks for its checkpoint."""
    for attempt, step in ((1, 4), (2, 0)):
        log = process_of(run, attempt)
        log.write(checked(step, metrics={"loss": 1.0}), None)
        log.close()
    assert logged_steps(run) == [4, 0]


@pytest.mark.parametrize("step, resumed", [(0, None), (2, None), (4, None), (2, 2), (4, -1)])
def test_second_script_of_an_attempt_keeps_the_lines_of_the_first(
    step: int, resumed: int | None, run: RunDir
) -> None:
    """As in `python train.py && python test.py`, where the second may ask for a checkpoint, or find none."""
    training, test = process_of(run), process_of(run)
    for done in (2, 4):
        for split in ("train", "validation"):
            training.write(checked(done, split=split, metrics={"loss": 1.0}), -1)
    training.close()
    test.write(checked(step, split="test", metrics={"loss": 2.0}), resumed)
    test.close()
    assert [logged_steps(run, split) for split in ("train", "validation", "test")] == [[2, 4], [2, 4], [step]]
    progress = read_json(run.progress)
    assert (progress["step"], progress["first_step"], progress["resumed"]) == (4, 0, False)
    assert set(progress["metrics"]) - {"test_loss"} == {"train_loss", "validation_loss"}


@pytest.mark.parametrize(
    "is_one_process, done, first_total, total",
    [
        *((True, 10, 10, 10), (True, 10, 10, 4), (True, 5, 10, 4), (True, 5, None, 4)),
        *((False, 10, 10, 10), (False, 8, 10, 10), (False, 5, 10, 4), (False, 5, None, 4)),
    ],
)
@pytest.mark.parametrize("values", [{"loss": 1.0}, {}])
def test_second_training_of_an_attempt_counts_its_own_steps(
    run: RunDir,
    is_one_process: bool,
    done: int,
    first_total: int | None,
    total: int,
    values: dict[str, float],
) -> None:
    """Or, stopped early, it would count as finished. The first may have ended early."""
    first = process_of(run)
    second = first if is_one_process else process_of(run)
    first.write(checked(done, total=first_total, metrics={"loss": 1.0}), None)
    first.close()
    second.write(checked(0, split="validation", metrics=values), None)
    second.write(checked(2, total=total, metrics=values), None)
    second.close()
    assert (shown(run).step, shown(run).total) == (2, total)
    # From here on, the pace is that of the second.
    assert read_json(run.progress)["second_step"] == 2
    assert logged_steps(run) == [done, 2][: 1 + len(values)]


def test_next_attempt_keeps_where_a_second_training_began(run: RunDir) -> None:
    """Its own pace is known only after some steps."""
    for attempt, lines in ((1, (10, 1, 2)), (2, (3,))):
        log = process_of(run, attempt)
        for step in lines:
            log.write(checked(step, total=10), step - 1)
        log.close()
    progress = read_json(run.progress)
    assert (progress["attempt"], progress["step"]) == (2, 3)
    assert (progress["second_attempt"], progress["second_step"]) == (1, 1)


def test_progress_of_a_second_training_is_written_at_once(run: RunDir) -> None:
    """Or, killed in its first seconds, it would count as finished."""
    log = process_of(run)
    for step in (9, 10, 1):
        log.write(checked(step, total=10, metrics={"loss": 1.0}), None)
    assert shown(run).is_before_end


def test_line_that_comes_late_begins_no_second_training(run: RunDir) -> None:
    """Nor does a test, or a training whose total changes."""
    training, test = process_of(run), process_of(run)
    for step, total in ((3, 10), (4, 8), (3, 8)):
        training.write(checked(step, total=total, metrics={"loss": 1.0}), None)
    training.close()
    test.write(checked(2, total=2, split="test", metrics={"loss": 1.0}), None)
    test.close()
    progress = read_json(run.progress)
    assert progress["step"] == 4
    assert "second_step" not in progress


@pytest.mark.parametrize("turns", [1, 5])
def test_two_models_with_their_own_totals_are_one_training(run: RunDir, turns: int) -> None:
    """A generator and a discriminator, which makes five steps for each step of the generator."""
    log = process_of(run)
    begun = set()
    for turn in range(0, 50, turns):
        for step in range(5 * turn + 1, 5 * (turn + turns) + 1):
            log.write(checked(step, total=500), None)
        for step in range(turn + 1, turn + turns + 1):
            log.write(checked(step, total=100), None)
        log.progress()
        begun.add(read_json(run.progress)["second_time"])
    # The first line of the generator may be that of a second training.
    assert len(begun) == 1


@pytest.mark.parametrize("ahead", [1, 32])
def test_validation_that_is_ahead_begins_no_second_training(run: RunDir, ahead: int) -> None:
    log = process_of(run)
    for step in range(1, 10):
        log.write(checked(step * ahead + 1, split="validation"), None)
        log.write(checked(step, total=10), None)
    log.close()
    assert "second_step" not in read_json(run.progress)
    assert shown(run).step == 9


def test_third_training_counts_its_own_steps(run: RunDir) -> None:
    log = process_of(run)
    for step, total in ((1, 10), (2, None), (5, None), (1, 4), (4, None), (2, 10)):
        log.write(checked(step, total=total), None)
    log.close()
    progress = read_json(run.progress)
    assert (progress["step"], progress["total_steps"], progress["second_step"]) == (2, 10, 2)


def test_step_of_a_line_that_is_newer_than_the_progress_file_is_known(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "_PROGRESS_EVERY_S", 3600.0)
    log = process_of(run)
    for step in (1, 2):
        log.write(checked(step, total=4, metrics={"loss": 1.0}), None)
    assert read_json(run.progress)["step"] == 1
    assert shown(run).step == 2


def test_lines_that_found_no_room_are_written_at_the_end(run: RunDir) -> None:
    """A folder in place of the file simulates a full disk."""
    log = process_of(run, attempt=0)
    run.metrics.mkdir(parents=True)
    log.write(checked(1, metrics={"loss": 0.5}), -1)
    run.metrics.rmdir()
    log.close()
    assert logged_steps(run) == [1]


def test_lines_that_found_no_room_are_written_before_a_checkpoint(run: RunDir) -> None:
    """An attempt that continues from it does not log them again."""
    script = start(run)
    run.metrics.mkdir(parents=True)
    script.log(step=1, loss=0.5)
    run.metrics.rmdir()
    save(script, 2)
    assert logged_steps(run) == [1]


def test_lines_of_an_earlier_attempt_are_dropped_when_there_is_room_again(run: RunDir) -> None:
    """A folder in place of the file simulates a full disk."""
    first = process_of(run, attempt=0)
    for step in (1, 2):
        first.write(checked(step, metrics={"loss": 0.5}), -1)
    os.rename(run.metrics, kept := run.path / "kept")
    run.metrics.mkdir()
    second = process_of(run, attempt=0)
    second.write(checked(2, metrics={"loss": 0.5}), 1)
    run.metrics.rmdir()
    os.rename(kept, run.metrics)
    second.write(checked(3, metrics={"loss": 0.5}), 1)
    assert logged_steps(run) == [1, 2, 3]


def test_file_system_that_is_away_for_a_moment_is_no_error(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it is unknown whether there are lines of earlier attempts, which must stay."""
    start(run).log(step=1, loss=0.5)
    again = start(run)

    def away(path: os.PathLike[str], *, facts_of: Any = os.stat, **options: Any) -> os.stat_result:
        if Path(path) == run.metrics:
            raise OSError(errno.ESTALE, "stale file handle")
        return facts_of(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr("os.stat", away)
        again.log(step=0, split="validation", loss=0.5)
    assert (logged_steps(run), logged_steps(run, "validation")) == ([1], [])


def test_test_alone_keeps_the_lines_of_a_training_that_has_ended(run: RunDir) -> None:
    first = start(run)
    for step in (1, 2):
        first.log(step=step, loss=0.5)
    start(run).log(step=2, split="test", loss=0.5)
    assert (logged_steps(run), logged_steps(run, "test")) == ([1, 2], [2])


@pytest.mark.parametrize("tested, first", [(0, 1), (0, 0), (100, 1)])
def test_test_before_a_training_stays_when_that_begins_anew(run: RunDir, tested: int, first: int) -> None:
    for count in (3, 2):
        script = start(run)
        script.log(step=tested, split="test", accuracy=1 / count)
        for step in range(first, first + count):
            script.log(step=step, loss=0.5)
    assert logged_steps(run) == [first, first + 1]
    tests = [line["accuracy"] for line in read_json_lines(run.metrics) if line["split"] == "test"]
    assert tests[-1] == 0.5


def test_evaluation_of_several_splits_keeps_the_lines_of_a_training(run: RunDir) -> None:
    training = start(run)
    for step in (1, 2, 3):
        training.log(step=step, loss=0.5)
    evaluation = start(run)
    for split in ("test", "validation"):
        evaluation.log(step=3, split=split, loss=0.5)
    assert [logged_steps(run, split) for split in ("train", "test", "validation")] == [[1, 2, 3], [3], [3]]


#: Its metrics found no room. While it saves, another attempt replaces it and logs.
REPLACED = """
import json, os, pathlib, stk
run = stk.current_run()
run.latest_checkpoint()
metrics = run.folder / "metrics.jsonl"
metrics.mkdir()
run.log(step=1, loss=1.0)
metrics.rmdir()
with run.checkpoint(1) as folder:
    (folder / "state").touch()
    (run.folder / "fence.json").write_text(json.dumps({"nonce": "second", "earlier": ["first"]}))
    metrics.write_text(json.dumps({"step": 1, "split": "train", "loss": 2.0}) + "\\n")
"""


def test_replaced_attempt_that_saves_leaves_the_metrics_of_the_next(run: RunDir) -> None:
    run.path.mkdir()
    places = {"STK_RUN_DIR": run.path, "STK_STOP_FILE": run.path / "stop", "STK_NONCE": "first"}
    watched = {"STK_WATCHER": os.getpid(), "STK_RESTARTER": os.getpid(), "STK_ATTEMPT": 1}
    environ = os.environ | {name: str(value) for name, value in (places | watched).items()}
    ended = subprocess.run([sys.executable, "-c", REPLACED], env=environ)
    assert ended.returncode == ExitCode.FENCED
    assert [line["loss"] for line in read_json_lines(run.metrics)] == [2.0]
    assert run.checkpoint_steps() == []


def test_script_without_stk_says_where_else_it_could_write(tmp_path: Path) -> None:
    """A file in place of the folder stands for a folder that cannot be written."""
    (tmp_path / "experiments").touch()
    with pytest.raises(UserError, match=r"experiments/alone/train.*STK_EXPERIMENT_DIR"):
        start(RunDir(tmp_path / "experiments" / "alone" / "train")).log(step=1, loss=0.5)


def test_only_rank_0_writes(run: RunDir) -> None:
    start(run, rank=1, size=2).log(step=1, loss=1.0)
    assert not run.path.exists()


def test_metric_with_a_non_finite_last_value_is_null_in_all_files(run: RunDir) -> None:
    """Otherwise the last finite loss of a diverged run could be the best of a sweep."""
    script = start(run)
    script.log(step=1, accuracy=0.5, loss=math.inf)
    script.log(step=2, total=2, loss=math.nan)
    assert [line["loss"] for line in read_json_lines(run.metrics)] == [None, None]
    assert final(run)["metrics"] == {"train": {"accuracy": 0.5, "loss": None}}
    assert read_json(run.progress)["metrics"] == {"train_accuracy": 0.5, "train_loss": None}
    script.log(step=3, loss=2.0)
    assert final(run)["metrics"] == {"train": {"accuracy": 0.5, "loss": 2.0}}


def test_validation_scores_of_a_finished_run_are_those_of_its_best_checkpoint(run: RunDir) -> None:
    script = start(run)
    for step, loss in enumerate((5.0, 1.0, 3.0), 1):
        for split in ("train", "validation", "test"):
            script.log(step=step, split=split, loss=loss)
        save(script, step, best=loss == 1.0)
    script.log(step=3, split="validation", accuracy=0.5)
    script.log(step=3, split="test", loss=2.0)
    found = final(run)
    assert (found["step"], found["best_checkpoint"]) == (3, {"step": 2, "validation": ["loss"]})
    assert found["metrics"] == {
        "train": {"loss": 3.0},
        "validation": {"loss": 1.0, "accuracy": 0.5},
        "test": {"loss": 2.0},
    }


def test_best_checkpoint_without_scores_of_its_step_is_named(run: RunDir) -> None:
    script = start(run)
    script.log(step=1, split="validation", loss=1.0)
    save(script, 2, best=True)
    assert final(run)["best_checkpoint"] == {"step": 2, "validation": []}
