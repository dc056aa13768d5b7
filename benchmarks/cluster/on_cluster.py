"""Shared code of the benchmarks on the Slurm test cluster: whether it is up, and one tool's run."""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from benchmarks.measuring.rounds import ROOT, Case, Process

_PEERS = ROOT / "benchmarks" / "peers"


def absent() -> str | None:
    """Return why nothing can be measured here; None if SLURM_CONF names our own test cluster."""
    configuration = Path(os.environ.get("SLURM_CONF", ""))
    if configuration.is_file() and configuration.parent.parent.name.startswith("stk-cluster-"):
        return None
    return "needs the test cluster (scripts/cluster up)"


def missing(cases: Sequence[Case], reason: str) -> dict[tuple[str, str], list[dict[str, float]] | str]:
    """Return the rows of cases that cannot be measured, with the reason."""
    return {(case.work, case.candidate): reason for case in cases}


def drive(script: str, folder: Path, variables: Mapping[str, Any], **arguments: Any) -> dict[str, float]:
    """Run a driver of peers/ in its own interpreter; return its figures. Raises ChildFailed.

    variables  for the driver and the jobs that it submits
    """
    own = folder / uuid.uuid4().hex
    own.mkdir()
    words = json.dumps({**arguments, "folder": str(own / "run")})
    command = [sys.executable, str(_PEERS / script), words, str(own / "answer.json")]
    Process(command, {name: str(value) for name, value in variables.items()}).finish()
    return cast("dict[str, float]", json.loads((own / "answer.json").read_text()))
