"""Files of a script's log and checkpoints; one process, no torch."""

from __future__ import annotations

import json
import logging
import math
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from toolkit.checkpoint.paths import matches_manifest
from toolkit.errors import CheckpointError, UserError
from toolkit.exit_codes import ExitCode
from toolkit.files import read_json, read_json_lines
from toolkit.run.events import read_events, save_events
from toolkit.run.run_dir import RunDir
from toolkit.workloads.custom.command.recorded import final, logged
from toolkit.workloads.custom.script import checkpoints, current_run, ranks, resuming
from toolkit.workloads.custom.script.current_run import CurrentRun
from toolkit.workloads.custom.script.metrics import MetricsLog, checked
from toolkit.workloads.custom.script.place import Place, find_place


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path / "run")


def start(run: RunDir, *, rank: int = 0, size: int = 1) -> CurrentRun:
    """The run as a process of the script sees it that has just been started."""
    return CurrentRun(Place(run=run, rank=rank, size=size))


def save(script: CurrentRun, step: int, text: str = "state", **options: bool | int) -> None:
    with script.checkpoint(step, **options) as folder:
        (folder / "parts").mkdir()
        (folder / "parts" / "0.txt").write_text(f"{text} {step}")


def steps(run: RunDir, split: str = "train") -> list[int]:
    return [line["step"] for line in read_json_lines(run.metrics) if line["split"] == split]


def test_saved_checkpoint_is_found_with_its_content(run: RunDir) -> None:
    save(start(run), 7)
    folder = start(run).latest_checkpoint()
    assert folder == run.checkpoint(7)
    assert (folder / "parts" / "0.txt").read_text() == "state 7"
    assert matches_manifest(folder)
    assert run.last.resolve() == folder
    (event,) = save_events(run)
    assert event.bytes == len("state 7")


def test_ranks_meet_again_and_again_while_rank_0_completes_a_checkpoint(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One collective would reach its time limit if the checksums of a large checkpoint take longer."""
    meetings: list[float] = []
    is_met, complete = Event(), checkpoints.commit

    def meet(value: float) -> list[float]:
        meetings.append(value)
        if meetings[-2:] == [1, 1]:
            is_met.set()
        return [value]

    def commit(*args: Any) -> int:
        assert is_met.wait(10)
        return complete(*args)

    monkeypatch.setattr(ranks, "group", lambda: SimpleNamespace(get_world_size=lambda: 1))
    monkeypatch.setattr(ranks, "largest", meet)
    monkeypatch.setattr(current_run, "largest", lambda *values: values)
    monkeypatch.setattr(ranks, "_MEET_EVERY_S", 0)
    monkeypatch.setattr(checkpoints, "commit", commit)
    save(start(run), 7)
    assert run.checkpoint_steps() == [7]
    assert meetings[-2:] == [0, 0]
    monkeypatch.setattr(checkpoints, "commit", complete)
    with pytest.raises(UserError, match=r"^run\.checkpoint\(8\)"), start(run).checkpoint(8):
        pass


def test_script_without_stk_says_that_it_continues(run: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    """It may have been called with other settings, which no identity separates."""
    save(start(run), 7)
    assert start(run).latest_checkpoint() is not None
    told = capsys.readouterr().err
    assert "step 7" in told
    assert str(run.path) in told


def test_another_number_of_processes_is_warned_of(run: RunDir, caplog: pytest.LogCaptureFixture) -> None:
    save(start(run), 7)
    with caplog.at_level(logging.WARNING, "toolkit"):
        assert resuming._answer(Place(run=run, rank=0, size=2)) == {"step": 7}
    assert "saved with WORLD_SIZE 1, and now it is 2" in caplog.text


@pytest.mark.parametrize("fold, attempt, is_refused", [("1", 1, True), ("0", 1, False), ("1", 2, False)])
def test_training_after_another_one_of_its_attempt_is_refused_unless_it_has_the_same_command_line(
    fold: str, attempt: int, is_refused: bool, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a loop over folds, whose later ones would continue from the first; not in `until python …`."""
    (run.path / "ranks").mkdir(parents=True)

    def begin(fold: str, attempt: int) -> None:
        monkeypatch.setattr(resuming, "_begun", [])
        monkeypatch.setattr(sys, "argv", ["train.py", "--fold", fold])
        resuming.begin_once(Place(run=run, rank=0, size=1, attempt=attempt), "trainer.fit")

    begin("0", 1)
    with pytest.raises(UserError, match="stk sweep") if is_refused else nullcontext():
        begin(fold, attempt)


def newest(run: RunDir, rank: int) -> resuming.Newest:
    """What a new process of one of two ranks asks for the newest checkpoint."""
    return resuming.Newest(Place(run=run, rank=rank, size=2, attempt=1, nonce="7.0.0"))


def test_second_process_of_a_rank_does_not_get_the_answer_to_the_first(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in `train.py && test.py`, where rank 1 may ask first."""
    monkeypatch.setattr(resuming, "_TIMEOUT_S", -1.0)
    (run.path / "ranks").mkdir(parents=True)
    main, other = newest(run, 0), newest(run, 1)
    assert [each.step() for each in (main, other)] == [None, None]
    save(start(run), 7)
    assert [each.step() for each in (main, other)] == [7, 7]
    save(start(run), 8)
    later = newest(run, 1)
    with pytest.raises(CheckpointError, match="waited"):
        later.step()
    assert [each.step() for each in (newest(run, 0), newest(run, 1))] == [8, 8]


def test_rank_whose_processes_ended_before_they_asked_gets_the_newest_answer(run: RunDir) -> None:
    (run.path / "ranks").mkdir(parents=True)
    assert newest(run, 0).step() is None
    save(start(run), 7)
    main, other = newest(run, 0), newest(run, 1)
    assert [each.step() for each in (main, other)] == [7, 7]
    save(start(run), 8)
    assert [each.step() for each in (main, other)] == [8, 8]


def test_save_is_refused_in_a_process_group_of_another_size(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the processes of torch.multiprocessing.spawn, which all have the RANK of their parent."""
    monkeypatch.setattr(current_run, "group", lambda: SimpleNamespace(get_world_size=lambda: 4))
    with pytest.raises(UserError, match="has 4 processes, but WORLD_SIZE is 1"):
        save(start(run), 7)
    assert run.checkpoint_steps() == []


def test_latest_checkpoint_is_none_before_the_first_save(run: RunDir) -> None:
    assert start(run).latest_checkpoint() is None
    assert not run.path.exists()


def test_damaged_checkpoint_is_rejected_and_the_previous_checkpoint_is_used(run: RunDir) -> None:
    for step in (1, 2):
        save(start(run), step)
    (run.checkpoint(2) / "parts" / "0.txt").write_text("STATE 0")
    assert start(run).latest_checkpoint() == run.checkpoint(1)
    assert run.checkpoint_steps() == [1]
    assert run.last.resolve() == run.checkpoint(1)
    (rejected,) = read_events(run, "checkpoint_rejected")
    assert "0.txt" in rejected.facts["reason"]


def test_start_is_refused_if_all_checkpoints_are_damaged(run: RunDir) -> None:
    save(start(run), 1)
    (run.checkpoint(1) / "MANIFEST.json").unlink()
    with pytest.raises(CheckpointError, match="refusing to start from the beginning"):
        start(run).latest_checkpoint()
    assert run.checkpoint_steps() == [1]


def test_checkpoint_is_rejected_if_its_manifest_names_other_files(run: RunDir) -> None:
    save(start(run), 1)
    manifest = run.checkpoint(1) / "MANIFEST.json"
    content = read_json(manifest)
    content["files"]["../../outside"] = {"bytes": 0, "crc32": 0}
    manifest.write_text(json.dumps(content))
    with pytest.raises(CheckpointError):
        start(run).latest_checkpoint()


def test_newest_and_best_checkpoints_are_kept(run: RunDir) -> None:
    script = start(run)
    for step in range(1, 6):
        save(script, step, best=step == 2)
    assert run.checkpoint_steps() == [2, 4, 5]
    assert run.best.resolve() == run.checkpoint(2)
    save(script, 6, best=True, keep=1)
    assert run.checkpoint_steps() == [6]


def test_new_checkpoint_of_a_lower_step_is_not_deleted(run: RunDir) -> None:
    for step in (100, 200):
        save(start(run), step)
    save(start(run), 10, keep=1)
    assert run.checkpoint_steps() == [10, 200]


def test_saving_a_step_again_replaces_its_checkpoint(run: RunDir) -> None:
    save(start(run), 1, "first")
    save(start(run), 1, "second")
    assert (run.checkpoint(1) / "parts" / "0.txt").read_text() == "second 1"
    assert run.checkpoint_leftovers() == []


def test_error_while_saving_leaves_no_checkpoint(run: RunDir) -> None:
    with pytest.raises(ZeroDivisionError), start(run).checkpoint(1):
        _ = 1 / 0
    assert list(run.checkpoints.iterdir()) == []


def test_incomplete_checkpoint_of_a_killed_start_is_removed(run: RunDir) -> None:
    save(start(run), 1)
    half = run.checkpoints / ".step_00000002.start_1.tmp"
    half.mkdir()
    start(run).latest_checkpoint()
    assert not half.exists()


@pytest.mark.parametrize("step", [-1, 100_000_000, 1.5])
def test_invalid_step_of_a_checkpoint_is_refused(run: RunDir, step: int) -> None:
    with pytest.raises(UserError, match="checkpoint"), start(run).checkpoint(step):
        pass
    assert not run.path.exists()


@pytest.mark.parametrize("target", [".", "state.txt"])
def test_symbolic_link_in_a_checkpoint_is_refused(target: str, run: RunDir) -> None:
    def save_link() -> None:
        with start(run).checkpoint(1) as folder:
            (folder / "state.txt").write_text("state")
            (folder / "latest").symlink_to(target)

    with pytest.raises(UserError, match=r"latest.*copy its content"):
        save_link()
    assert run.checkpoint_steps() == []


def test_rank_without_a_process_group_cannot_save(run: RunDir) -> None:
    with pytest.raises(UserError, match="init_process_group"), start(run, rank=1, size=2).checkpoint(1):
        pass


def test_several_ranks_without_a_process_group_cannot_resume(run: RunDir) -> None:
    with pytest.raises(UserError, match="init_process_group"):
        start(run, size=2).latest_checkpoint()


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
    assert steps(run) == [1, 2, 3, 4, 5, 6]
    assert steps(run, "validation") == [3]
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


def test_start_from_the_beginning_drops_earlier_metrics(run: RunDir) -> None:
    start(run).log(step=5, loss=1.0)
    again = start(run)
    assert again.latest_checkpoint() is None
    again.log(step=2, loss=1.0)
    assert steps(run) == [2]


def test_logging_an_earlier_step_in_a_new_start_drops_later_steps(run: RunDir) -> None:
    first = start(run)
    for step in (1, 2, 3):
        first.log(step=step, loss=1.0)
    start(run).log(step=2, loss=0.5)
    assert steps(run) == [1, 2]


def test_line_of_step_0_before_the_resume_keeps_the_lines_of_earlier_attempts(run: RunDir) -> None:
    """As `trainer.evaluate()` before `trainer.train()` writes it in each attempt."""
    for first_step in (1, 3):
        script = start(run)
        script.log(step=0, split="validation", accuracy=0.1)
        script.latest_checkpoint()
        for step in (first_step, first_step + 1):
            script.log(step=step, loss=1.0)
        save(script, first_step + 1)
    assert steps(run) == [1, 2, 3, 4]
    assert steps(run, "validation") == [0]
    progress = read_json(run.progress)
    assert (progress["first_step"], progress["resumed"]) == (2, True)


@pytest.mark.parametrize("later", [None, 99])
def test_training_whose_first_line_is_of_step_0_begins_there(later: int | None, run: RunDir) -> None:
    log = MetricsLog(Place(run=run, rank=0, size=1))
    log.write(checked(0, metrics={"accuracy": 0.1}), None)
    # No earlier attempt has lines to keep.
    assert steps(run) == [0]
    if later:
        log.write(checked(later), None)
        assert steps(run) == [0]
    log.close()
    assert steps(run) == [0]
    progress = read_json(run.progress)
    assert (progress["step"], progress["first_step"], progress["resumed"]) == (later or 0, 0, False)


def test_script_that_logs_only_step_0_keeps_the_lines_of_earlier_attempts(run: RunDir) -> None:
    """It may be stopped, or fail, before it asks for its checkpoint."""
    run.path.mkdir()
    for attempt, step in ((1, 4), (2, 0)):
        log = MetricsLog(Place(run=run, rank=0, size=1, attempt=attempt))
        log.write(checked(step, metrics={"loss": 1.0}), None)
        log.close()
    assert steps(run) == [4, 0]


@pytest.mark.parametrize("step, resumed", [(0, None), (2, None), (4, None), (2, 2), (4, -1)])
def test_second_script_of_an_attempt_keeps_the_lines_of_the_first(
    step: int, resumed: int | None, run: RunDir
) -> None:
    """As in `python train.py && python test.py`, where the second may ask for a checkpoint, or find none."""
    run.path.mkdir()
    place = Place(run=run, rank=0, size=1, attempt=1)
    training, test = MetricsLog(place), MetricsLog(place)
    for done in (2, 4):
        for split in ("train", "validation"):
            training.write(checked(done, split=split, metrics={"loss": 1.0}), -1)
    training.close()
    test.write(checked(step, split="test", metrics={"loss": 2.0}), resumed)
    test.close()
    assert [steps(run, split) for split in ("train", "validation", "test")] == [[2, 4], [2, 4], [step]]
    progress = read_json(run.progress)
    assert (progress["step"], progress["first_step"], progress["resumed"]) == (4, 0, False)
    assert set(progress["metrics"]) - {"test_loss"} == {"train_loss", "validation_loss"}


@pytest.mark.parametrize("is_one_process", [True, False])
def test_second_training_of_an_attempt_counts_its_own_steps(run: RunDir, is_one_process: bool) -> None:
    """Or, stopped early, it would count as finished."""
    run.path.mkdir()
    first = MetricsLog(Place(run=run, rank=0, size=1, attempt=1))
    second = first if is_one_process else MetricsLog(Place(run=run, rank=0, size=1, attempt=1))
    first.write(checked(10, total=10, metrics={"loss": 1.0}), None)
    first.close()
    second.write(checked(0, split="validation", metrics={"loss": 1.0}), None)
    second.write(checked(2, total=4, metrics={"loss": 1.0}), None)
    second.close()
    assert logged(run, 1).is_before_end
    assert steps(run) == [10, 2]


def test_lines_that_found_no_room_are_written_at_the_end(run: RunDir) -> None:
    """A folder in place of the file simulates a full disk."""
    log = MetricsLog(Place(run=run, rank=0, size=1))
    run.metrics.mkdir(parents=True)
    log.write(checked(1, metrics={"loss": 0.5}), -1)
    run.metrics.rmdir()
    log.close()
    assert steps(run) == [1]


def test_script_without_stk_says_where_else_it_could_write(tmp_path: Path) -> None:
    """A file in place of the folder stands for a folder that cannot be written."""
    (tmp_path / "experiments").touch()
    with pytest.raises(UserError, match=r"experiments/alone/train.*STK_EXPERIMENT_DIR"):
        start(RunDir(tmp_path / "experiments" / "alone" / "train")).log(step=1, loss=0.5)


def test_only_rank_0_writes(run: RunDir) -> None:
    start(run, rank=1, size=2).log(step=1, loss=1.0)
    assert not run.path.exists()


def test_non_finite_values_are_logged_as_null(run: RunDir) -> None:
    start(run).log(step=1, loss=math.nan, norm=math.inf)
    (line,) = read_json_lines(run.metrics)
    assert (line["loss"], line["norm"]) == (None, None)


def test_metric_with_a_non_finite_last_value_is_null_in_the_progress_and_the_result(run: RunDir) -> None:
    """Otherwise the last finite loss of a diverged run could be the best of a sweep."""
    script = start(run)
    script.log(step=1, accuracy=0.5, loss=1.0)
    script.log(step=2, total=2, loss=math.nan)
    assert final(run)["metrics"] == {"train": {"accuracy": 0.5, "loss": None}}
    assert read_json(run.progress)["metrics"] == {"train_accuracy": 0.5, "train_loss": None}
    script.log(step=3, loss=2.0)
    assert final(run)["metrics"] == {"train": {"accuracy": 0.5, "loss": 2.0}}


def test_leave_exits_with_status_75(run: RunDir) -> None:
    with pytest.raises(SystemExit) as left:
        start(run).leave()
    assert left.value.code == ExitCode.YIELDED == 75


def test_run_without_stk_is_named_after_the_script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["some/where/train.py", "--lr", "1"])
    assert find_place({}).run.path == tmp_path / "alone" / "train"
    monkeypatch.setattr(sys, "argv", ["-c"])
    assert find_place({}).run.path == tmp_path / "alone" / "session"
    with pytest.raises(UserError, match="RANK is 'one'"):
        find_place({"RANK": "one"})


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)


def test_current_run_does_not_import_torch(tmp_path: Path) -> None:
    code = (
        "import sys, stk\n"
        "run = stk.current_run(); run.latest_checkpoint(); run.should_stop(); run.log(step=1, loss=1)\n"
        "with run.checkpoint(1) as folder: (folder / 'state').write_text('')\n"
        "print([name for name in ('torch', 'numpy', 'safetensors', 'rich') if name in sys.modules])"
    )
    done = python(code, tmp_path)
    assert done.stdout.strip() == "[]", done.stderr


def test_failed_script_leaves_its_last_step_in_the_progress_file(tmp_path: Path) -> None:
    code = (
        "import stk\n"
        "run = stk.current_run()\n"
        "for step in range(1, 16): run.log(step=step, total=60, loss=1 / step)\n"
        "raise ValueError('labels')"
    )
    assert "labels" in python(code, tmp_path).stderr
    (progress,) = tmp_path.rglob("progress.json")
    shown = read_json(progress)
    assert (shown["step"], shown["metrics"]) == (15, {"train_loss": 1 / 15})
