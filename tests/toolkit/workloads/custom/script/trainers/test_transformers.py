"""The Trainer of transformers with RunCallback resumes to the same weights after a stop or a kill."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.toolkit.workloads.custom.script.interrupted import (
    ALL_STEPS,
    TOTAL,
    Interrupted,
    assert_goes_on_after_a_kill,
    assert_goes_on_after_a_stop,
    logged_steps,
)
from tests.toolkit.workloads.custom.script.own_run import AskedRun, own_run_for
from tests.toolkit.workloads.custom.script.training_scripts import TRANSFORMERS
from toolkit.errors import UserError
from toolkit.exit_codes import ExitCode
from toolkit.files import read_json
from toolkit.run.events import read_events
from toolkit.run.run_dir import MANIFEST
from toolkit.workloads.custom.script import resuming

pytestmark = pytest.mark.skipif(find_spec("accelerate") is None, reason="accelerate is not installed")


@pytest.fixture
def trainer(tmp_path: Path) -> Interrupted:
    return Interrupted(tmp_path, TRANSFORMERS)


@pytest.fixture
def own_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AskedRun:
    return own_run_for("transformers", tmp_path / "run", monkeypatch)


@pytest.fixture
def callback(own_run: AskedRun) -> Any:
    from toolkit.workloads.custom.script.trainers.for_transformers import RunCallback

    return RunCallback()


@pytest.mark.parametrize("output, is_shared", [("run/work/out", True), ("out", False)])
def test_checkpoint_shares_files_only_with_the_run_itself(
    output: str, is_shared: bool, callback: Any, tmp_path: Path
) -> None:
    """Another run with the same output_dir writes into the same files."""
    kept = tmp_path / "run/checkpoints/step_00000003"
    saved = tmp_path / output / "checkpoint-3"
    for folder in (kept, saved):
        folder.mkdir(parents=True)
    (saved / "model.bin").write_text("3")
    callback._run = SimpleNamespace(folder=tmp_path / "run", checkpoint=lambda *_, **__: nullcontext(kept))
    arguments: Any = SimpleNamespace(output_dir=str(tmp_path / output), process_index=0)
    state: Any = SimpleNamespace(global_step=3, best_global_step=None)
    callback.on_save(arguments, state, None)
    assert (kept / "model.bin").samefile(saved / "model.bin") is is_shared


@pytest.mark.parametrize("keep", [0, None, 1.5])
def test_callback_refuses_a_wrong_number_of_checkpoints(keep: Any, own_run: AskedRun) -> None:
    from toolkit.workloads.custom.script.trainers.for_transformers import RunCallback

    with pytest.raises(UserError, match=r"test_transformers\.py:\d+: RunCallback\(keep="):
        RunCallback(keep=keep)


def test_metrics_have_names_that_the_run_accepts(callback: Any) -> None:
    logged: list[dict[str, Any]] = []
    callback._run = SimpleNamespace(log=lambda **values: logged.append(values))
    state = SimpleNamespace(global_step=1, max_steps=2, epoch=0.5)
    callback.on_log(None, state, None, {"loss": 1.0, "total": 2.0, "train_runtime": 3.0, "epoch": 0.5})
    callback.on_log(None, state, None, {"eval_loss": 4.0, "eval_step": 5.0, "eval_runtime": 6.0})
    callback.on_log(None, state, None, {"test_loss": 7.0, "test_runtime": 8.0})
    place = {"step": 1, "total": 2, "epoch": 0.5}
    assert logged == [
        place | {"split": "train", "loss": 1.0, "train_total": 2.0},
        place | {"split": "validation", "loss": 4.0, "eval_step": 5.0},
        place | {"split": "test", "loss": 7.0},
    ]


@pytest.mark.parametrize("name", ["news", "my", "eval"])
def test_figures_of_the_trainer_are_no_metrics_of_an_evaluation_set(name: str, callback: Any) -> None:
    from transformers.trainer_utils import speed_metrics

    logged: list[dict[str, Any]] = []
    callback._run = SimpleNamespace(log=lambda **values: logged.append(values))
    own = {"loss": 4.0, "my_runtime": 2.0, "my_samples_per_second": 3.0}
    logs = speed_metrics(f"eval_{name}", 0.0, num_samples=8, num_steps=2) | {
        "epoch": 0.5,
        "train_runtime": 3.0,
    }
    logs |= {f"eval_{name}_{key}": value for key, value in own.items()}
    callback.on_log(None, SimpleNamespace(global_step=1, max_steps=2, epoch=0.5), None, logs)
    place = {"step": 1, "total": 2, "epoch": 0.5, "split": "validation"}
    assert logged == [place | {f"{name}_{key}": value for key, value in own.items()}]


def small_trainer(folder: Path, *, max_steps: int = 2, **options: Any) -> Any:
    """Return a Trainer of a small model, with epochs of two steps."""
    import torch
    from transformers import Trainer, TrainingArguments

    from toolkit.workloads.custom.script.trainers.for_transformers import RunCallback

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"loss": (self.layer(x) - labels).pow(2).mean()}

    torch.manual_seed(0)
    samples: Any = [{"x": torch.ones(2), "labels": torch.ones(1)} for _ in range(4)]
    arguments = TrainingArguments(
        output_dir=str(folder / "out"),
        max_steps=max_steps,
        per_device_train_batch_size=2,
        learning_rate=0.001,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        **options,
    )
    return Trainer(
        model=Model(), args=arguments, train_dataset=samples, eval_dataset=samples, callbacks=[RunCallback()]
    )


def train_with_patience(folder: Path, *, fails_at: int | None = None) -> int:
    """Train with an evaluation and a save after each step; return the last step.

    The loss falls, so that only the first evaluation is the best.
    """
    from transformers import EarlyStoppingCallback, TrainerCallback

    class Fails(TrainerCallback):  # type: ignore[misc, unused-ignore]
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step + 1 == fails_at:
                raise OSError("the disk")

    resuming._begun.clear()
    every_step = {"save_strategy": "steps", "save_steps": 1, "eval_strategy": "steps", "eval_steps": 1}
    best = {"metric_for_best_model": "loss", "greater_is_better": True}
    trainer = small_trainer(folder, max_steps=8, **every_step, **best)
    for callback in (EarlyStoppingCallback(early_stopping_patience=3), Fails()):
        trainer.add_callback(callback)
    trainer.train()
    return int(trainer.state.global_step)


def test_early_stopping_goes_on_to_count_after_a_failure(own_run: AskedRun, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="the disk"):
        train_with_patience(tmp_path, fails_at=4)
    assert saves(own_run) == [1, 2, 3]
    assert train_with_patience(tmp_path) == 4


def saves(run: AskedRun) -> list[int]:
    return [event.facts["step"] for event in read_events(run.dir, "save")]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["no", "epoch"])
def test_stop_in_an_evaluation_after_the_training_saves_the_last_step_once(
    strategy: str, own_run: AskedRun, tmp_path: Path
) -> None:
    trainer = small_trainer(tmp_path, save_strategy=strategy)
    trainer.train()
    assert saves(own_run) == ([] if strategy == "no" else [2])
    own_run.is_asked = True
    with pytest.raises(SystemExit) as left:
        trainer.evaluate()
    assert left.value.code == ExitCode.YIELDED
    assert saves(own_run) == [2]
    own_run.is_asked = False
    resuming._begun.clear()
    resumed = small_trainer(tmp_path, save_strategy=strategy)
    assert resumed.train().global_step == 2
    assert resumed.model.layer.weight.equal(trainer.model.layer.weight)
    assert "eval_loss" in resumed.evaluate()
    assert saves(own_run) == [2]


@pytest.mark.slow
def test_stop_in_an_evaluation_of_the_best_weights_does_not_save_them_as_the_last(
    own_run: AskedRun, tmp_path: Path
) -> None:
    # The loss falls, so that only the first of two evaluations is a new best one.
    trainer = small_trainer(
        tmp_path,
        save_strategy="best",
        eval_strategy="steps",
        eval_steps=1,
        metric_for_best_model="loss",
        greater_is_better=True,
        load_best_model_at_end=True,
    )
    trainer.train()
    own_run.is_asked = True
    with pytest.raises(SystemExit):
        trainer.evaluate()
    assert saves(own_run) == [1]


def test_signals_are_caught_before_the_trainer_starts_workers_of_its_loader(
    callback: Any, own_run: AskedRun
) -> None:
    callback.newest(None)
    assert own_run.catches_signals


@pytest.mark.parametrize("asks", [False, True])
def test_training_that_has_not_asked_for_its_checkpoint_is_refused(
    asks: bool, callback: Any, own_run: AskedRun
) -> None:
    """A subclass may have a `train` of its own, as trl's PPOTrainer does."""
    if asks:
        own_run.latest_checkpoint()
    with nullcontext() if asks else pytest.raises(UserError, match="latest_checkpoint"):
        callback.on_train_begin(SimpleNamespace(save_only_model=False), None, None)


@pytest.mark.parametrize(
    "changes, is_kept", [({}, True), ({"global_step": 3}, False), ({"epoch": 1.5}, False)]
)
def test_trainer_saves_after_its_training_only_if_a_resume_makes_no_further_step(
    changes: dict[str, Any], is_kept: bool, callback: Any
) -> None:
    callback._trainer = SimpleNamespace(train_dataset=[1, 2])
    args = SimpleNamespace(load_best_model_at_end=False, fp16_full_eval=False, bf16_full_eval=False)
    state = SimpleNamespace(**{"global_step": 4, "max_steps": 4, "epoch": 2.0, **changes})
    callback.on_train_end(args, state, SimpleNamespace())
    assert (callback._trainer is not None) is is_kept


@pytest.mark.slow
def test_stop_before_the_first_step_after_a_resume_does_not_save_again(
    own_run: AskedRun, tmp_path: Path
) -> None:
    """The random numbers are still those of the new process."""
    small_trainer(tmp_path, save_strategy="epoch").train()
    manifest = own_run.dir.checkpoint(2) / MANIFEST
    saved = manifest.read_text()
    resuming._begun.clear()
    own_run.is_asked = True
    with pytest.raises(SystemExit) as left:
        small_trainer(tmp_path, max_steps=4, eval_on_start=True).train()
    assert left.value.code == ExitCode.YIELDED
    assert manifest.read_text() == saved


@pytest.mark.slow
def test_stopped_trainer_resumes_to_the_same_weights(trainer: Interrupted) -> None:
    workers = TRANSFORMERS.replace("use_cpu=True", "use_cpu=True, dataloader_num_workers=2")
    (trainer.work / "train.py").write_text(workers)
    run = assert_goes_on_after_a_stop(trainer, 2, saved=5, like=TRANSFORMERS)
    result = read_json(run.result)
    assert result["step"] == TOTAL
    assert {"loss", "lr", "grad_norm"} <= set(result["metrics"]["train"])
    assert set(result["metrics"]["validation"]) == {"loss"}
    assert logged_steps(run, "validation") == [6, 12]


@pytest.mark.slow
def test_trainer_stopped_in_an_evaluation_saves_and_resumes_to_the_same_weights(trainer: Interrupted) -> None:
    reached = """
        reached(min(state.global_step, 7))

    def on_prediction_step(self, args, state, control, **kwargs):
        if state.global_step == 6:
            reached(8)
"""
    script = TRANSFORMERS.replace("\n        reached(state.global_step)\n", reached)
    (trainer.work / "train.py").write_text(script)
    expected = trainer.undisturbed(1, like=TRANSFORMERS)
    run = trainer.stopped(1)
    assert run.checkpoint_steps() == [5, 6]
    assert trainer.train(1) == expected
    assert logged_steps(run) == ALL_STEPS
    assert logged_steps(run, "validation") == [12]


@pytest.mark.slow
def test_killed_trainer_resumes_from_its_last_checkpoint(trainer: Interrupted) -> None:
    assert_goes_on_after_a_kill(trainer, 2, saved=5)


@pytest.mark.slow
def test_trainer_does_not_evaluate_at_the_step_at_which_it_is_stopped(
    own_run: AskedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_run.is_asked = True
    trainer = small_trainer(tmp_path, eval_strategy="steps", eval_steps=1)
    monkeypatch.setattr(trainer, "get_eval_dataloader", lambda *_: pytest.fail("it evaluates"))
    with pytest.raises(SystemExit) as left:
        trainer.train()
    assert left.value.code == ExitCode.YIELDED
    assert saves(own_run) == [1]


@pytest.mark.slow
def test_a_trainer_that_saves_only_the_model_is_refused(own_run: AskedRun, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="save_only_model"):
        small_trainer(tmp_path, save_only_model=True).train()


@pytest.mark.slow
def test_second_training_in_one_script_is_refused(own_run: AskedRun, tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path)
    trainer.train()
    with pytest.raises(UserError, match="second training"):
        trainer.train()


@pytest.mark.slow
def test_wrapped_train_method_keeps_its_signature() -> None:
    from transformers import Trainer

    from toolkit.workloads.custom.script.trainers import for_transformers

    before = inspect.getclosurevars(Trainer.train).nonlocals["train"]
    assert Trainer.train.__module__ == before.__module__ != for_transformers.__name__
    assert inspect.signature(Trainer.train) == inspect.signature(before)
