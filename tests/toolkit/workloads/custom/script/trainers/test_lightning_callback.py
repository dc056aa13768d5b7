"""What RunCallback of Lightning saves, logs and obeys in a Trainer of this process."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.toolkit.workloads.custom.script.interrupted import logged_steps
from tests.toolkit.workloads.custom.script.own_run import AskedRun, own_run_for
from toolkit.errors import UserError
from toolkit.exit_codes import ExitCode
from toolkit.files import read_json, read_json_lines

# Only slow tests import it: the import would take each test worker four seconds.
pytestmark = pytest.mark.skipif(find_spec("lightning") is None, reason="lightning is not installed")


@pytest.fixture
def own_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AskedRun:
    return own_run_for("lightning", tmp_path / "run", monkeypatch)


def small_model(*, optimizers: int = 1) -> Any:
    """Return a model with two numbers and one. With several optimizers, each makes a step in each batch."""
    import lightning
    import torch

    class Model(lightning.LightningModule):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)
            self.automatic_optimization = optimizers == 1

        def training_step(self, batch: Any, index: int) -> Any:
            self.log_dict({"total": 1.0, "train_time": 2.0})
            if self.automatic_optimization:
                return self.layer(batch).sum()
            for optimizer in self.optimizers():
                optimizer.zero_grad()
                self.manual_backward(self.layer(batch).sum())
                optimizer.step()
            return None

        def validation_step(self, batch: Any, index: int) -> None:
            self.log_dict({"val/total": 3.0, "val_loss": 4.0})

        def configure_optimizers(self) -> Any:
            return [torch.optim.SGD(self.layer.parameters(), lr=0.1) for _ in range(optimizers)]

    return Model()


def fit(
    *callbacks: Any,
    model: Any = None,
    every_n_steps: int | None = None,
    every_n_epochs: int = 1,
    loads_all: bool = False,
    checkpoints: bool = False,
    validation: Any = None,
    **options: Any,
) -> Any:
    """Train in this process, two epochs of two batches, each with a validation of two; return the Trainer."""
    import lightning
    import torch

    from toolkit.workloads.custom.script.trainers.for_lightning import RunCallback

    loader: Any = torch.utils.data.DataLoader(torch.ones(4, 2), batch_size=2)  # type: ignore[arg-type, unused-ignore]
    trainer = lightning.Trainer(
        accelerator="cpu",
        logger=False,
        enable_checkpointing=checkpoints,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[RunCallback(every_n_steps=every_n_steps, every_n_epochs=every_n_epochs), *callbacks],
        **{"devices": 1, "num_sanity_val_steps": 0, "max_epochs": 2, **options},
    )
    more: Any = {"weights_only": False} if loads_all else {}
    trainer.fit(model or small_model(), loader, loader if validation is None else validation, **more)
    return trainer


def saved(run: AskedRun, step: int) -> Any:
    import torch

    return torch.load(run.dir.checkpoint(step) / "lightning.ckpt", weights_only=True)


@pytest.mark.slow
def test_callback_refuses_a_wrong_number_of_checkpoints(own_run: AskedRun) -> None:
    from toolkit.workloads.custom.script.trainers.for_lightning import RunCallback

    with pytest.raises(UserError, match=r"test_lightning_callback\.py:\d+: RunCallback\(keep=None"):
        RunCallback(keep=None)  # type: ignore[arg-type, unused-ignore]


@pytest.mark.slow
def test_processes_that_lightning_starts_itself_are_refused(own_run: AskedRun) -> None:
    with pytest.raises(UserError, match="--procs 2"):
        fit(devices=2)


@pytest.mark.slow
def test_trainer_stopped_before_its_training_leaves_without_a_save(
    own_run: AskedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_run._agreement, "is_asked", lambda: True)
    with pytest.raises(SystemExit) as left:
        fit(num_sanity_val_steps=1)
    assert left.value.code == ExitCode.YIELDED
    assert own_run.dir.checkpoint_steps() == []


@pytest.mark.slow
def test_save_has_what_callbacks_behind_ours_do_after_the_step(own_run: AskedRun) -> None:
    from lightning.pytorch.callbacks import LambdaCallback

    steps: list[int] = []
    counter = LambdaCallback(
        on_train_batch_end=lambda trainer, *_: steps.append(trainer.global_step),
        on_save_checkpoint=lambda trainer, module, checkpoint: checkpoint.update(counted=[*steps]),
    )
    fit(counter, every_n_steps=3)
    assert own_run.dir.checkpoint_steps() == [3, 4]
    assert saved(own_run, 3)["counted"] == [1, 2, 3]


@pytest.mark.slow
def test_stop_in_a_validation_of_other_weights_waits_for_the_next_step(own_run: AskedRun) -> None:
    """Callbacks that average weights put the averages into the model for the validation."""
    import torch
    from lightning.pytorch.callbacks import LambdaCallback

    kept: list[Any] = []

    def exchange(trainer: Any, module: Any) -> None:
        own_run.is_asked = True
        for parameter in module.parameters():
            kept.append(parameter.detach().clone())
            parameter.data.zero_()

    def restore(trainer: Any, module: Any) -> None:
        for parameter, value in zip(module.parameters(), kept, strict=True):
            parameter.data.copy_(value)

    with pytest.raises(SystemExit) as left:
        fit(LambdaCallback(on_validation_epoch_start=exchange, on_validation_epoch_end=restore))
    assert left.value.code == ExitCode.YIELDED
    assert own_run.dir.checkpoint_steps() == [2, 3]
    assert torch.equal(saved(own_run, 2)["state_dict"]["layer.weight"], kept[0])


@pytest.mark.slow
def test_checkpoint_has_the_model_if_a_plugin_writes_it_in_a_thread(own_run: AskedRun) -> None:
    from lightning.pytorch.plugins.io import AsyncCheckpointIO, TorchCheckpointIO

    is_awaited = Event()

    class Slow(TorchCheckpointIO):  # type: ignore[misc, unused-ignore]
        def save_checkpoint(self, *args: Any, **options: Any) -> None:
            is_awaited.wait()
            super().save_checkpoint(*args, **options)

    class Plugin(AsyncCheckpointIO):  # type: ignore[misc, unused-ignore]
        def save_checkpoint(self, *args: Any, **options: Any) -> None:
            # The Trainer replaces the plugin within.
            self.checkpoint_io = Slow()
            super().save_checkpoint(*args, **options)

        def teardown(self) -> None:
            is_awaited.set()
            super().teardown()
            is_awaited.clear()

    fit(plugins=[Plugin()])
    for step in (2, 4):
        assert saved(own_run, step)["global_step"] == step


@pytest.mark.slow
def test_stop_in_a_validation_without_a_length_saves_there(own_run: AskedRun) -> None:
    import torch
    from lightning.pytorch.callbacks import LambdaCallback

    class Stream(torch.utils.data.IterableDataset):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            return iter(torch.ones(4, 2))

    def ask(*_: Any) -> None:
        own_run.is_asked = True

    stream = torch.utils.data.DataLoader(Stream(), batch_size=2)
    with pytest.raises(SystemExit) as left:
        fit(LambdaCallback(on_validation_epoch_start=ask), validation=stream)
    assert left.value.code == ExitCode.YIELDED
    assert own_run.dir.checkpoint_steps() == [2]


@pytest.mark.slow
@pytest.mark.parametrize("changes", ["on_train_batch_end", "an untrained parameter"])
def test_stop_in_a_validation_saves_there_if_the_module_itself_changes_its_weights(
    changes: str, own_run: AskedRun
) -> None:
    """It may clip them after each step, or count in a parameter without an optimizer."""
    import torch
    from lightning.pytorch.callbacks import LambdaCallback

    model = small_model()
    model.seen = torch.nn.Parameter(torch.zeros(1))

    def ask(*_: Any) -> None:
        own_run.is_asked = True
        model.seen.data += 1

    def clip(*_: Any) -> None:
        for parameter in model.parameters():
            parameter.data.clamp_(-0.01, 0.01)

    if changes == "on_train_batch_end":
        model.on_train_batch_end = clip
    with pytest.raises(SystemExit) as left:
        fit(LambdaCallback(on_validation_epoch_start=ask), model=model)
    assert left.value.code == ExitCode.YIELDED
    assert own_run.dir.checkpoint_steps() == [2]


@pytest.mark.slow
@pytest.mark.parametrize("end", [{}, {"max_steps": 3}])
def test_last_save_has_the_trained_weights_if_others_replace_them_at_the_end_of_the_training(
    end: dict[str, int], own_run: AskedRun
) -> None:
    from lightning.pytorch.callbacks import LambdaCallback

    def exchange(trainer: Any, module: Any) -> None:
        for parameter in module.parameters():
            parameter.data.zero_()

    fit(LambdaCallback(on_train_end=exchange), every_n_epochs=5, **end)
    (last,) = own_run.dir.checkpoint_steps()
    assert last == end.get("max_steps", 4)
    assert saved(own_run, last)["state_dict"]["layer.weight"].any()


class Interruption(BaseException):
    """The process ends here."""


@pytest.mark.slow
@pytest.mark.parametrize("end", ["max_epochs", "max_steps"])
@pytest.mark.parametrize("moment", ["on_train_epoch_start", "on_train_end", "on_test_batch_end"])
def test_interrupted_training_ends_with_the_best_file_epoch_and_rate_of_an_undisturbed_one(
    moment: str, end: str, own_run: AskedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in the epoch after the best one, or stopped after the last: EarlyStopping ends it after six."""
    import torch
    from lightning.pytorch.callbacks import EarlyStopping, LambdaCallback, ModelCheckpoint

    def leave(trainer: Any, *_: Any) -> None:
        if moment != "on_train_epoch_start" or trainer.current_epoch == 4:
            raise Interruption

    def train(*others: Any) -> tuple[str, int, float]:
        monkeypatch.setattr("toolkit.workloads.custom.script.resuming._begun", [])
        model: Any = small_model()
        losses = (4.0, 3.0, 5.0, 2.0, 6.0, 7.0, 1.0)
        model.validation_step = lambda batch, batch_idx: model.log("val_loss", losses[model.current_epoch])
        model.test_step = lambda batch, batch_idx: None
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
        schedule = {"scheduler": plateau, "monitor": "val_loss"}
        model.configure_optimizers = lambda: {"optimizer": optimizer, "lr_scheduler": schedule}
        best = ModelCheckpoint(dirpath=tmp_path, monitor="val_loss", enable_version_counter=False)
        early = EarlyStopping("val_loss", patience=2)
        lengths = {"max_epochs": 7} if end == "max_epochs" else {"max_epochs": -1, "max_steps": 14}
        trainer = fit(best, early, *others, model=model, checkpoints=True, **lengths)
        trainer.test(model, torch.utils.data.DataLoader(torch.ones(2, 2)), ckpt_path="best", verbose=False)
        return Path(best.best_model_path).name, trainer.current_epoch, optimizer.param_groups[0]["lr"]

    with pytest.raises(Interruption):
        train(LambdaCallback(**{moment: leave}))
    assert train() == ("epoch=3-step=8.ckpt", 6, pytest.approx(1e-3))


@pytest.mark.slow
def test_search_of_a_learning_rate_within_the_training_is_not_saved(own_run: AskedRun) -> None:
    from lightning.pytorch.callbacks import LearningRateFinder

    class Search(LearningRateFinder):  # type: ignore[misc, unused-ignore]
        def on_fit_start(self, *_: Any) -> None:
            pass

        def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
            if trainer.current_epoch == 1:
                self.lr_find(trainer, pl_module)

    model = small_model()
    model.lr = 0.1
    fit(Search(num_training_steps=4), model=model)
    assert own_run.dir.checkpoint_steps() == [2, 4]


@pytest.mark.slow
def test_trainer_with_log_every_n_steps_of_0_logs_no_metrics_of_the_training(own_run: AskedRun) -> None:
    fit(log_every_n_steps=0)
    assert logged_steps(own_run.dir, "validation") == [2, 4]
    assert logged_steps(own_run.dir) == []


@pytest.mark.slow
def test_metrics_with_a_name_that_is_reserved_are_logged_under_a_longer_name(own_run: AskedRun) -> None:
    fit(log_every_n_steps=1)
    train, *_, validation = read_json_lines(own_run.dir.metrics)
    assert (train["train_total"], train["train_time"]) == (1, 2)
    assert (validation["val/total"], validation["loss"]) == (3, 4)


@pytest.mark.slow
@pytest.mark.parametrize("accumulate, losses", [(1, [4, 3, 2, 1]), (2, [3, 1])])
def test_loss_is_that_of_each_step_and_means_over_an_epoch_are_of_its_last_step(
    accumulate: int, losses: list[float], own_run: AskedRun
) -> None:
    """The module returns the loss of a batch, and logs the mean and another metric once for each epoch.

    LearningRateMonitor stores a rate before the epoch's first step.
    """
    import lightning
    import torch

    class Rates(lightning.Callback):  # type: ignore[misc, unused-ignore]
        def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
            trainer.callback_metrics["lr-SGD"] = torch.tensor(float(trainer.current_epoch))

    model: Any = small_model()
    batches = iter([4.0, 3.0, 2.0, 1.0])

    def step(batch: Any, batch_idx: int) -> Any:
        loss = 0 * model.layer(batch).sum() + next(batches)
        model.log("train_loss", loss, on_step=False, on_epoch=True)
        model.log("both", loss, on_step=True, on_epoch=True)
        return loss

    model.training_step = step
    model.on_train_epoch_end = lambda: model.log("train_f1", float(model.current_epoch))
    model.on_train_epoch_start = lambda: model.current_epoch or model.log("train_begun", 1.0)
    fit(Rates(), model=model, log_every_n_steps=1, accumulate_grad_batches=accumulate)
    lines = [each for each in read_json_lines(own_run.dir.metrics) if each["split"] == "train"]
    of_steps, of_epochs = (
        [each for each in lines if ("loss" in each) is is_step] for is_step in (True, False)
    )
    assert [each["loss"] for each in of_steps] == [each["both"] for each in of_steps] == losses
    last = {
        name: [each[name] for each in of_epochs]
        for name in ("step", "epoch", "loss_epoch", "both_epoch", "f1")
    }
    assert last == {
        "step": [len(losses) // 2, len(losses)],
        "epoch": [1, 2],
        "loss_epoch": [3.5, 1.5],
        "both_epoch": [3.5, 1.5],
        "f1": [0, 1],
    }
    assert "both" not in of_epochs[0]
    assert [each["lr-SGD"] for each in of_steps] == sorted([0, 1] * (len(losses) // 2))
    assert [each.get("begun") for each in of_epochs] == [1, None]


@pytest.mark.slow
def test_saves_within_an_epoch_are_due_though_a_batch_makes_several_steps(own_run: AskedRun) -> None:
    fit(model=small_model(optimizers=2), every_n_steps=5)
    assert own_run.dir.checkpoint_steps() == [6, 8]


@pytest.mark.slow
@pytest.mark.parametrize("optimizers, max_steps, total", [(2, -1, None), (2, 4, 4), (1, -1, 4)])
def test_total_is_unknown_if_several_optimizers_make_steps_and_only_the_batches_are_counted(
    optimizers: int, max_steps: int, total: int | None, own_run: AskedRun
) -> None:
    fit(model=small_model(optimizers=optimizers), max_steps=max_steps)
    assert read_json(own_run.dir.progress)["total_steps"] == total


@pytest.mark.slow
@pytest.mark.parametrize("loads_all", [False, True])
def test_log_names_the_objects_that_lightning_would_not_load(
    loads_all: bool, own_run: AskedRun, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("lightning", minversion="2.6", reason="older Lightning loads all objects")
    model = small_model()
    model.save_hyperparameters({"activation": partial(max)})
    fit(model=model, loads_all=loads_all)
    assert own_run.dir.checkpoint_steps() == [2, 4]
    assert caplog.text.count("functools.partial") == (0 if loads_all else 1)


@pytest.mark.slow
def test_checkpoint_that_torch_cannot_scan_does_not_end_the_training(
    own_run: AskedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scan(path: Path) -> list[str]:
        raise EOFError

    module = "toolkit.workloads.custom.script.trainers.for_lightning"
    monkeypatch.setattr(f"{module}.get_unsafe_globals_in_checkpoint", scan)
    fit()
    assert own_run.dir.checkpoint_steps() == [2, 4]
