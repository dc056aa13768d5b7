"""Asking for an evaluation of a run in this process."""

from __future__ import annotations

from typing import Any

from toolkit.rescore import Request, rescore
from toolkit.rundir import RunDir
from toolkit.world import World


def ask(run: RunDir, **request: Any) -> dict[str, Any]:
    return rescore(run, World.single(), Request(**request), lambda what, done, total: None)
