"""The arguments of `stk cancel`."""

from __future__ import annotations

from slurm.arguments.common import RUN_HELP, Parsers, command


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = command(
        parsers,
        "cancel",
        "end live runs",
        "Cancel the jobs of runs; local processes save and leave. A cancelled run can be resumed.",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUN_HELP)
