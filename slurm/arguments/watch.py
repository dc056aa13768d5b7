"""The arguments of `stk watch`."""

from __future__ import annotations

from slurm.arguments.common import RUN_HELP, Parsers, command


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = command(
        parsers,
        "watch",
        "where everything stands, live",
        "As status, again and again until Ctrl-C. Requeued jobs that wait for Slurm's two minutes are let\n"
        "start at once. Without RUN: all under STK_EXPERIMENT_DIR. One RUN in a terminal: its curves, its\n"
        "time, what its ranks take and its log, with keys to cancel, to requeue and to follow the log.\n"
        "Files are read at each look, Slurm is asked twice a minute.",
    )
    parser.add_argument("runs", nargs="*", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--interval", type=float, default=5.0, metavar="S", help="seconds between two looks (default 5)"
    )
    parser.add_argument("--until-finished", action="store_true", help="end when no run is live any more")
