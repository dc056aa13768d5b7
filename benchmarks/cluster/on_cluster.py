"""Shared code of the benchmarks on the Slurm test cluster: whether it is up, and the runs of tools."""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from benchmarks.figures.tables import Found
from benchmarks.measuring.rounds import ROOT, Case, Process, Size, in_turns

#: Name as in peers/tools/by_name.py, title, required packages.
Tool = tuple[str, str, tuple[str, ...]]

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


def measure_tools(
    work: str,
    tools: Sequence[Tool],
    run: Callable[[str], dict[str, float]],
    size: Size,
    say: Callable[[str], None],
) -> Found:
    """Measure the tools in turns, at toy size two of them; without the cluster, give the reason.

    run  measures a tool by its name
    """
    cases = [
        Case(work=work, candidate=title, measure=partial(run, name), needs=needs)
        for name, title, needs in tools
        if not size.quick or name in ("stk", "submitit")
    ]
    reason = absent()
    return in_turns(cases, size.rounds, say) if reason is None else missing(cases, reason)


def by_part(found: Found, title: str, whole: str, parts: Sequence[str]) -> Found:
    """Return rows with the tools as work and the parts as candidates, in s.

    title, whole  of the sum of the parts: its name in the rows, and its figure
    """
    rows: dict[tuple[str, str], list[dict[str, float]] | str] = {}
    for (_, tool), rounds in found.items():
        if isinstance(rounds, str):
            rows[tool, title] = rounds
            continue
        rows[tool, title] = [{"s": each[whole]} for each in rounds]
        rows.update({(tool, part): [{"s": each[part]} for each in rounds] for part in parts})
    return rows


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
