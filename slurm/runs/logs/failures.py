"""Which failure belongs to a start."""

from __future__ import annotations

from typing import Any

from slurm.runs.logs.starts import Start
from toolkit.errors import RunFailed
from toolkit.files import read_json
from toolkit.run.failure.records import first_failure
from toolkit.run.run_dir import RunDir


def failure_of(run: RunDir, start: Start | None, *, is_newest: bool) -> dict[str, Any] | None:
    """Return the first failure of a start; None if no failure is known.

    failure.json is the newest start's, and knows best of that one. Raises RunFailed where the file is
    damaged.
    """
    try:
        known = read_json(run.failure)
        if isinstance(known, dict) and (is_newest or (start and known.get("nonce") == start.nonce)):
            return known
        return first_failure(run, start.nonce) if start is not None and start.nonce else None
    except (OSError, ValueError) as error:
        raise RunFailed(f"{run.failure} cannot be read: {error}") from error
