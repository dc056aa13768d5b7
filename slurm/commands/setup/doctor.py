"""stk doctor"""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from slurm.doctor.checks.experiment import Asked
from slurm.doctor.run_checks import Options, examine
from slurm.submission.submit import choose_cluster
from toolkit.config import load
from toolkit.errors import ExitCode, UserError
from toolkit.run.create_run import run_of
from toolkit.system.json_text import json_text


def run(arguments: Namespace) -> int:
    """Say what is found; 4 where something of that is a problem."""
    asked = _asked(arguments)
    options = Options(
        asks_slurm=choose_cluster(arguments.cluster) == "slurm",
        wants_slurm=arguments.cluster != "local",
        asked=asked,
        partition=arguments.partition or "",
        on_node=arguments.on_node,
    )
    if options.on_node and not options.asks_slurm:
        raise UserError("--on-node asks on a host of a cluster, and no Slurm controller answers here")
    report = examine(options, _say)
    if arguments.json:
        print(json_text(report.to_json()))
    else:
        from slurm.doctor.render import show

        show(report)
    return ExitCode.FAILED if report.has_problem else 0


def _asked(arguments: Namespace) -> Asked | None:
    if arguments.config is None:
        return None
    experiment = load(Path(arguments.config), arguments.overrides)
    return Asked(experiment, run_of(experiment))


def _say(what: str) -> None:
    """Say what is being done, on a terminal."""
    if sys.stderr.isatty():
        print(f"… {what}", file=sys.stderr, flush=True)
