"""Shared code of the benchmarks on the Slurm test cluster: whether there is one, and one tool's run."""

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
    """Why nothing can be measured here; None where the test cluster is up, which is nobody else's."""
    configuration = Path(os.environ.get("SLURM_CONF", ""))
    if configuration.is_file() and configuration.parent.parent.name.startswith("stk-cluster-"):
        return None
    return "needs the test cluster (scripts/cluster up)"


def missing(cases: Sequence[Case], reason: str) -> dict[tuple[str, str], list[dict[str, float]] | str]:
    """The rows of cases that cannot be measured."""
    return {(case.work, case.candidate): reason for case in cases}


def drive(script: str, folder: Path, variables: Mapping[str, Any], **arguments: Any) -> dict[str, float]:
    """Return the figures of a driver of peers/, in its own interpreter. Raises ChildFailed.

    variables  for the driver and the jobs that it submits
    """
    own = folder / uuid.uuid4().hex
    own.mkdir()
    words = json.dumps({**arguments, "folder": str(own / "run")})
    command = [sys.executable, str(_PEERS / script), words, str(own / "answer.json")]
    Process(command, {name: str(value) for name, value in variables.items()}).finish()
    return cast("dict[str, float]", json.loads((own / "answer.json").read_text()))
