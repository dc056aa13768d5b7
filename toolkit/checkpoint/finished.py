"""The checkpoint with which a finished run is scored and used. Imports no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toolkit.errors import CheckpointError, UserError
from toolkit.files import read_json
from toolkit.run.records.from_json import whole
from toolkit.run.run_dir import RunDir


def unfinished(run: RunDir) -> UserError:
    """Return the error for a run that cannot be used yet."""
    return UserError(
        f"{run.run_id} has not finished, or its {run.result.name} is gone: see `stk status {run.path}`"
    )


def finished_result(run: RunDir) -> dict[str, Any]:
    """Return the result of a finished run. Raises UserError without one, or if it is damaged."""
    try:
        result: dict[str, Any] | None = read_json(run.result)
        if not isinstance(result, dict | None):
            raise ValueError("expected a JSON object")
    except ValueError as error:
        raise _damaged(run, str(error)) from None
    if result is None:
        raise unfinished(run)
    return result


def _damaged(run: RunDir, problem: str) -> UserError:
    return UserError(
        f"{run.result} is damaged: {problem}. Restore it from a copy. Unless this is an export, "
        "you can also remove it: `stk resume` makes it again"
    )


def best_step(run: RunDir) -> int:
    """The step of a finished run's best checkpoint, or of its last one if it found no best one.

    Raises UserError if the run has not finished, if its result is damaged, or if its own program trains the
    model.
    """
    best = finished_result(run).get("best")
    if not isinstance(best, dict | None):
        raise _damaged(run, "best is not a JSON object")
    if (step := (best or {}).get("step")) is None:
        raise UserError(
            f"{run.run_id} has finished, but has no best checkpoint: its own program trains the model, "
            "and only this program can load the weights"
        )
    if (found := whole(step)) is None:
        raise _damaged(run, "its best step is not a number")
    return found


def best_checkpoint(run: RunDir) -> Path:
    """The checkpoint of `best_step`. Not verified.

    Raises UserError as `best_step` does, and CheckpointError if the checkpoint is gone.
    """
    folder = run.checkpoint(best_step(run))
    if not folder.is_dir():
        raise CheckpointError(
            f"{folder}, the best checkpoint of {run.run_id}, is gone: no other file has its weights"
        )
    return folder
