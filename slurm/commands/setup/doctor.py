"""stk doctor"""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from slurm.doctor.run_checks import examine
from slurm.submission.submit import choose_cluster
from toolkit.config import load
from toolkit.errors import UserError
from toolkit.exit_codes import ExitCode
from toolkit.system.output.json_text import json_text


def run(arguments: Namespace) -> int:
    """Print the findings; 4 if one of them is a problem."""
    experiment = load(Path(arguments.config), arguments.overrides) if arguments.config else None
    asks_slurm = choose_cluster(arguments.cluster) == "slurm"
    if arguments.on_node and not asks_slurm:
        raise UserError("--on-node checks a host of a cluster, but no Slurm controller answers here")
    report = examine(
        experiment,
        asks_slurm=asks_slurm,
        wants_slurm=arguments.cluster != "local",
        partition=arguments.partition or "",
        on_node=arguments.on_node,
        say=_say,
    )
    if arguments.json:
        print(json_text(report.to_json()))
    else:
        from slurm.doctor.render import show

        show(report)
    return ExitCode.FAILED if report.has_problem else 0


def _say(what: str) -> None:
    """Print the current check, on a terminal."""
    if sys.stderr.isatty():
        print(f"… {what}", file=sys.stderr, flush=True)
