"""A model of the user that counts: in attributes, which processes do not share, or in the optimizer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.support.tiny_training import Attempt, Lab
from tests.toolkit.workloads.custom.own_digits import DIGITS, MODELS
from toolkit.config import load
from toolkit.run.events import read_events
from toolkit.testing.contract import same_results

_BUFFER = "        import torch\n        self.register_buffer('steps', torch.zeros(()))\n"
_OPTIMIZER = """

def optimizer(model, lr: float = 0.01):
    adam = torch.optim.AdamW(model.parameters(), lr=lr)
    adam.register_step_post_hook(lambda *_: model.steps.add_(1))
    return adam
"""


def _write(config: Path, first: str, forward: str) -> None:
    """Write a model with a first value of `seen`, and a line that each pass executes."""
    counts = f"        self.seen = {first}\n\n    def forward(self, x):\n        {forward}\n"
    models = config.parent / "my_project" / "models.py"
    models.write_text(f"{MODELS}{counts}        return super().forward(x)\n")


@pytest.mark.parametrize("forward", ["self.seen += self.training", "self.seen += 0.1"])
@pytest.mark.parametrize("size", [1, 2])
def test_number_that_grows_in_each_step_is_named_once(
    config: Path, tmp_path: Path, forward: str, size: int
) -> None:
    _write(config, "0", forward)
    run = Lab(tmp_path / "lab").train(load(config, ["train.epochs=1"]), Attempt(size=size))
    (event,) = read_events(run, "model_warning")
    assert "seen" in str(event)


@pytest.mark.parametrize(
    "first, forward",
    [
        ("0", "self.seen = max(self.seen, len(x))"),
        ("False", "self.seen = True"),
        ("0.0", "self.seen = x.mean().item()"),
    ],
    ids=["the largest batch", "a first pass", "a value of the batch"],
)
def test_numbers_that_do_not_count_are_not_warned_of(
    config: Path, tmp_path: Path, first: str, forward: str
) -> None:
    _write(config, first, forward)
    run = Lab(tmp_path / "lab").train(load(config, ["train.epochs=1"]), Attempt())
    assert [*read_events(run, "model_warning")] == []


def test_steps_that_the_optimizer_counts_are_the_same_on_two_processes_and_after_a_stop(
    config: Path, tmp_path: Path
) -> None:
    models = config.parent / "my_project" / "models.py"
    models.write_text(f"{MODELS}{_BUFFER}")
    warm = DIGITS.replace('reduction="none")', 'reduction="none") * (model.steps / 20).clamp(max=1)')
    (config.parent / "digits.py").write_text(warm + _OPTIMIZER)
    experiment, lab = load(config), Lab(tmp_path / "lab")
    undisturbed = lab.train(experiment, Attempt())
    stopped = lab.train(experiment, Attempt(size=2, stop_after=9), Attempt())
    assert [*read_events(stopped, "model_warning")] == []
    same_results(stopped, undisturbed)
