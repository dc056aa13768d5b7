"""Asking for an evaluation of a run in this process."""

from __future__ import annotations

from typing import Any

from toolkit.analysis.reevaluate import Request, rescore
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World


def ask(run: RunDir, **request: Any) -> dict[str, Any]:
    return rescore(run, World.single(), Request(**request), lambda what, done, total: None)
