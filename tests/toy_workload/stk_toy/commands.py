"""What the package adds to the command line."""

from __future__ import annotations

import subprocess
from argparse import ArgumentParser, Namespace

from toolkit.command import Command, EvaluateMode, EvaluateOptions, Host


def _add_run(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run")


def line(arguments: Namespace, host: Host) -> int:
    """Let the code of a run say where it lies."""
    command, environment = host.process(host.find_run(arguments.run), "stk_toy.place", "{}")
    return subprocess.run(command, env=environment, check=False).returncode


def score_points(arguments: Namespace, host: Host) -> int:
    """Count the points of a file."""
    with open(arguments.points, encoding="utf-8") as lines:
        print(f"{sum(1 for _ in lines)} points")
    return 0


def _add_points(parser: ArgumentParser) -> None:
    parser.add_argument("--points", metavar="FILE", help="points to count")


LINE = Command(
    summary="where the code of a run lies",
    description="Print the file that a run executes.",
    add_arguments=_add_run,
    run="stk_toy.commands:line",
    executes_run=True,
)
EVALUATE = EvaluateOptions(
    add_arguments=_add_points,
    description="Or count points: stk evaluate --points FILE",
    modes=(EvaluateMode(option="points", takes=(), run="stk_toy.commands:score_points"),),
)
