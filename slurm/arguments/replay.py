"""The arguments of `stk replay`."""

from __future__ import annotations

from slurm.arguments.common import RUN_HELP, Parsers, command, json_option


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = command(
        parsers,
        "replay",
        "recompute any step of a run",
        "Recompute one step from the run's folder, with the run's own code: its samples, learning rate and\n"
        "loss, compared with the step's receipt. Touches nothing. Exit code 1 where they differ.",
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--step", type=int, required=True, metavar="N", help="which step, counted from 1")
    json_option(parser)
