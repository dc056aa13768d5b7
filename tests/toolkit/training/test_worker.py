"""One worker process of a run: its exit status and its messages."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.toolkit.support.tiny import metrics_lines, tiny, write_experiment
from toolkit.config import Experiment
from toolkit.errors import TrainingDiverged
from toolkit.exit_codes import ExitCode
from toolkit.files import read_json, read_json_lines
from toolkit.reliability.stop import Stop, StopFlag
from toolkit.run.attempts.outcome import Outcome
from toolkit.run.create_run import create_run
from toolkit.run.folder_trust import VARIABLE
from toolkit.run.run_dir import RunDir, find_runs
from toolkit.system.world import NONCE_VARIABLE, World
from toolkit.training import worker
from toolkit.training.context import TrainContext
from toolkit.training.step import take_step
from toolkit.training.step.take_step import update


@pytest.fixture(autouse=True)
def process_as_it_was(tmp_path: Path, threads_restored: None) -> Iterator[None]:
    """A worker has its process to itself: it sets variables, signal handlers and threads."""
    environment = dict(os.environ)
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", NONCE_VARIABLE):
        os.environ.pop(name, None)
    os.environ["STK_EXPERIMENT_DIR"] = str(tmp_path / "experiments")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    os.environ.clear()
    os.environ.update(environment)


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    return tiny(tmp_path / "data", "train.epochs=1", "train.eval_per_epoch=1")


@pytest.fixture
def run(experiment: Experiment, tmp_path: Path) -> RunDir:
    return create_run(experiment, tmp_path / "experiments")


@pytest.fixture
def config(tmp_path: Path) -> str:
    return str(write_experiment(tmp_path / "data"))


def the_run(tmp_path: Path) -> RunDir:
    (run,) = find_runs(tmp_path / "experiments")
    return run


@pytest.mark.parametrize(
    "write, message",
    [
        (lambda table: table.unlink(), "train.tsv"),
        (lambda table: table.write_text("words\tlabel\na\tgood\n"), "text"),
        (lambda table: table.write_text("text\tlabel\n"), "train.tsv"),
    ],
)
def test_data_error_is_one_message_without_a_stack_trace(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], write: Any, message: str
) -> None:
    write(tmp_path / "data" / "train.tsv")
    assert worker.main([config]) == 2
    err = capsys.readouterr().err
    assert err.count("error:") == 1
    assert message in err
    assert "Traceback" not in err
    failure = read_json(the_run(tmp_path).failure)
    assert (failure["class"], failure["phase"], failure["rank"]) == ("input", "data preparation", 0)


def test_config_error_is_reported_before_a_run_is_created(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert worker.main([config, "train.epochz=3", "train.batch_size=0"]) == 2
    err = capsys.readouterr().err
    assert "2 faults" in err
    assert not (tmp_path / "experiments").exists()


def test_non_finite_loss_ends_the_run_before_the_save(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    overrides = [
        "optimizer.kind=sgd",
        "optimizer.lr=1e30",
        "lr_scheduler.kind=constant",
        "checkpoint.every_steps=1",
    ]
    assert worker.main([config, *overrides]) == 4
    err = capsys.readouterr().err
    assert err.startswith("error: the loss of step ")
    assert "Traceback" not in err
    run = the_run(tmp_path)
    failure = read_json(run.failure)
    assert (failure["class"], failure["phase"]) == ("diverged", "communication")
    assert run.checkpoint_steps()[-1] == failure["step"]
    assert "optimizer.lr" in failure["message"]


def test_nan_weights_after_an_update_are_not_kept_as_a_checkpoint(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loss was finite, but its gradient was not."""

    def spoil(context: TrainContext, count: float) -> None:
        update(context, count)
        if context.state.progress.step == 2:
            next(context.state.model.parameters()).data.fill_(torch.nan)

    saving = replace(experiment, checkpoint=replace(experiment.checkpoint, every_steps=1))
    run = create_run(saving, tmp_path / "experiments")
    monkeypatch.setattr(take_step, "update", spoil)
    with pytest.raises(TrainingDiverged, match="after step 2"):
        worker.run_attempt(run, World.single(), StopFlag())
    assert max(run.checkpoint_steps()) == 1
    monkeypatch.undo()
    assert worker.run_attempt(run, World.single(), StopFlag()) is Outcome.FINISHED


def test_metrics_that_found_no_room_are_written_before_the_next_checkpoint(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attempt that continues from it does not evaluate again. A folder simulates a full disk."""
    often = replace(
        experiment,
        train=replace(experiment.train, steps=6, epochs=None, eval_steps=3, log_per_epoch=1),
        checkpoint=replace(experiment.checkpoint, every_steps=1),
    )
    run = create_run(often, tmp_path / "experiments")
    written: list[int] = []

    def fill_the_disk(context: TrainContext, count: float) -> None:
        update(context, count)
        if (step := context.state.progress.step) == 3:
            run.metrics.mkdir()
        elif step == 4:
            run.metrics.rmdir()
        elif step == 5:
            written.extend(line["step"] for line in metrics_lines(run))

    monkeypatch.setattr(take_step, "update", fill_the_disk)
    assert worker.run_attempt(run, World.single(), StopFlag()) is Outcome.FINISHED
    assert written == [3]


@pytest.mark.parametrize("bad_step", [4, 8], ids=["middle", "last step"])
def test_nan_weights_at_an_evaluation_are_neither_saved_nor_best(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad_step: int
) -> None:
    """The accuracy of NaN scores is that of one class, which may be the best."""

    def spoil(context: TrainContext, count: float) -> None:
        update(context, count)
        if context.state.progress.step == bad_step:
            next(context.state.model.parameters()).data.fill_(torch.nan)

    often = replace(experiment, train=replace(experiment.train, steps=8, epochs=None, eval_steps=4))
    run = create_run(often, tmp_path / "experiments")
    monkeypatch.setattr(take_step, "update", spoil)
    with pytest.raises(TrainingDiverged, match=f"after step {bad_step} weights are not finite"):
        worker.run_attempt(run, World.single(), StopFlag())
    assert bad_step not in run.checkpoint_steps()
    # It was not saved and then set aside: its save could have removed the best checkpoint.
    assert "checkpoint_rejected" not in {event["event"] for event in read_json_lines(run.events)}


def test_unexpected_exception_keeps_its_stack_trace(
    run: RunDir, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit.training.attempt.stages.train", lambda training, stop: 1 / 0)
    assert worker.main([str(run.path)]) == 4
    assert "ZeroDivisionError" in capsys.readouterr().err
    failure = read_json(run.failure)
    assert (failure["class"], failure["message"]) == ("exception", "ZeroDivisionError: division by zero")
    assert "train" in failure["traceback"]
    (log,) = run.logs.glob("*.rank_00000.log")
    assert "Traceback" in log.read_text()


def test_signal_saves_exits_with_75_and_the_run_resumes(
    config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal comes in the third step."""
    ask, calls = TrainContext.is_asked_to_stop, []

    def send_and_ask(context: TrainContext, stop: Stop) -> bool:
        calls.append(1)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGTERM)
        return ask(context, stop)

    monkeypatch.setattr(TrainContext, "is_asked_to_stop", send_and_ask)
    assert worker.main([config, "train.epochs=1"]) == ExitCode.YIELDED == 75
    run = the_run(tmp_path)
    assert run.checkpoint_steps() == [3]
    ends = [line for line in read_json_lines(run.attempts) if "why" in line]
    assert [(line["last_step"], line["why"]) for line in ends] == [(3, "SIGTERM")]
    assert worker.main([str(run.path)]) == 0
    assert read_json(run.result)["attempts"] == 2
    assert len({(line["step"], line["split"]) for line in metrics_lines(run)}) == len(metrics_lines(run))


@pytest.mark.parametrize("option", [[], ["--prepare"]])
def test_a_folder_that_others_may_write_is_not_executed(
    run: RunDir, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: list[str]
) -> None:
    run.config.chmod(0o666)
    assert worker.main([*option, str(run.path)]) == 2
    assert VARIABLE in capsys.readouterr().err
    assert not run.attempts.exists()
    assert not (tmp_path / "data" / "prepared").exists()
    os.environ[VARIABLE] = str(run.path)
    assert worker.main([*option, str(run.path)]) == 0


def test_prepare_option_prepares_data_without_a_run(config: str, tmp_path: Path) -> None:
    assert worker.main(["--prepare", config]) == 0
    assert list((tmp_path / "data" / "prepared").glob("*/meta.json"))
    assert not (tmp_path / "experiments").exists()
