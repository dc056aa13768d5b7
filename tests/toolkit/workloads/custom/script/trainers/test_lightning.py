"""Lightning's Trainer with RunCallback resumes to the same weights after a stop or a kill."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.toolkit.workloads.custom.script.interrupted import (
    ALL_STEPS,
    STEP,
    TOTAL,
    Interrupted,
    assert_goes_on_after_a_kill,
    assert_goes_on_after_a_stop,
    logged_steps,
)
from tests.toolkit.workloads.custom.script.training_scripts import LIGHTNING
from toolkit.files import read_json

pytestmark = pytest.mark.skipif(find_spec("lightning") is None, reason="lightning is not installed")


#: A loader that knows where in its epoch it is, by the interface that Lightning asks for.
RESUMABLE = """
class Loader:
    def __init__(self):
        self.epoch = self.done = 0

    def __len__(self):
        return 4

    def __iter__(self):
        if self.done == len(self):
            self.epoch, self.done = self.epoch + 1, 0
        order = torch.randperm(16, generator=torch.Generator().manual_seed(self.epoch))
        for part in order.view(4, 4)[self.done:]:
            self.done += 1
            yield samples[part]

    def state_dict(self):
        return {"epoch": self.epoch, "done": self.done}

    def load_state_dict(self, state):
        self.epoch, self.done = state["epoch"], state["done"]


loader = Loader()
"""


@pytest.fixture
def trainer(tmp_path: Path) -> Interrupted:
    return Interrupted(tmp_path, LIGHTNING)


@pytest.mark.slow
def test_trainer_stopped_at_the_end_of_an_epoch_ends_with_the_same_weights(trainer: Interrupted) -> None:
    """That of the earlier package, where it is installed: other tests stop the present one."""
    package = "pytorch_lightning" if find_spec("pytorch_lightning") else "lightning"
    script = LIGHTNING.replace("import lightning as L", f"import {package} as L")
    assert f"import {package} as L" in script
    (trainer.work / "train.py").write_text(script)
    run = assert_goes_on_after_a_stop(trainer, 1, saved=4, like=LIGHTNING)
    result = read_json(run.result)
    assert set(result["metrics"]["train"]) == {"loss", "size"}
    assert set(result["metrics"]["validation"]) == {"loss"}
    # Lightning does not make up for the validation after the step at which it was stopped.
    assert logged_steps(run, "validation") == [4, TOTAL]


@pytest.mark.slow
def test_trainer_stopped_within_an_epoch_resumes_exactly_with_stateful_loader(trainer: Interrupted) -> None:
    lines = LIGHTNING.replace("max_epochs", "limit_val_batches=0, max_epochs")
    loader = "loader = DataLoader(samples, batch_size=4, shuffle=True)\n"
    assert loader in lines
    (trainer.work / "train.py").write_text(lines.replace(loader, RESUMABLE))
    moments = trainer.work / "moments.py"
    moments.write_text(moments.read_text().replace(f"step != {STEP}", "step != 6"))
    expected = trainer.undisturbed(1)
    run = trainer.stopped(1)
    assert run.checkpoint_steps() == [4, 6]
    assert trainer.train(1) == expected
    assert logged_steps(run) == ALL_STEPS


def held(hook: str, when: str) -> str:
    """The script, which waits for a stop in another hook than after a step."""
    moment = f"""
        reached(min(trainer.global_step, 7))

    def {hook}(self, trainer, *_):
        if {when}:
            reached(1)
            reached({STEP})

    def on_fit_start(self, trainer, module):
        if os.environ.get("STK_ATTEMPT") != "1":
            begun.append(2)
"""
    return (
        LIGHTNING.replace("\n        reached(trainer.global_step)\n", moment)
        .replace("import reached, size", "import begun, reached, size")
        .replace(
            "    def configure_optimizers", "    test_step = validation_step\n\n    def configure_optimizers"
        )
    )


@pytest.mark.slow
def test_trainer_stopped_in_a_validation_saves_and_resumes_to_the_same_weights(trainer: Interrupted) -> None:
    script = held("on_validation_batch_end", f"trainer.global_step == {STEP}")
    (trainer.work / "train.py").write_text(script)
    run = assert_goes_on_after_a_stop(trainer, 2, saved=4, like=LIGHTNING)
    assert logged_steps(run, "validation") == [4, TOTAL]


@pytest.mark.slow
def test_trainer_stopped_in_a_test_after_its_training_has_not_finished(trainer: Interrupted) -> None:
    script = held("on_test_batch_end", "True") + "trainer.test(trainer.lightning_module, loader)\n"
    (trainer.work / "train.py").write_text(script.replace("batch_size=8", "batch_size=8, num_workers=1"))
    expected = trainer.undisturbed(1, like=LIGHTNING)
    run = trainer.stopped(1)
    assert run.checkpoint_steps() == [STEP, TOTAL]
    assert trainer.train(1) == expected


@pytest.mark.slow
def test_killed_trainer_resumes_from_the_last_epoch(trainer: Interrupted) -> None:
    run = assert_goes_on_after_a_kill(trainer, 1, saved=4)
    assert logged_steps(run, "validation") == [4, 8, TOTAL]
