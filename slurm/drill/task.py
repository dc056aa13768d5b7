"""The experiment of a drill: the user's own, or an example of a workload."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from toolkit.config import load
from toolkit.config.schema import Experiment
from toolkit.errors import UserError
from toolkit.registry import first_code, load_code, task_kinds

#: Steps between two saves, and between two interruptions.
STRIDE = 4


def drill_experiment(
    config: Path | None, overrides: Sequence[str], folder: Path, interruptions: int
) -> Experiment:
    """Return the experiment with frequent saves and enough epochs. Raises ConfigError, UserError.

    The changes do not affect the comparison: a drill ends the run long before its last epoch.
    """
    path = config or _write_example(folder)
    overrides = overrides if config else ["name=drill", *overrides]
    steps = STRIDE * (interruptions + 2)
    own = load(path, overrides)
    if not task_kinds()[own.task.kind].task:
        raise UserError(
            f"a task of kind {own.task.kind} trains in its own program, which stk drill cannot compare: to "
            "test it, start `stk run CONFIG`, press Ctrl-C, and start it again"
        )
    return load(
        path,
        [
            *overrides,
            f"train.epochs={max(own.train.epochs or 0, steps)}",
            "train.steps=null",
            "evaluation.patience=null",
            f"checkpoint.every_steps={STRIDE}",
            f"checkpoint.keep={interruptions + 8}",
            # The drill's own interruptions send no messages.
            "resources.webhook_env=null",
        ],
    )


def _write_example(folder: Path) -> Path:
    """Let a workload write its example; return the experiment file. Raises UserError without an example."""
    code = first_code("example")
    if not code:
        raise UserError("no installed workload has an example for a drill: give a CONFIG")
    folder.mkdir(parents=True, exist_ok=True)
    path: Path = load_code(code)(folder)
    return path
