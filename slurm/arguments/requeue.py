"""The arguments of `stk requeue`."""

from __future__ import annotations

from slurm.arguments.common import RUN_HELP, Parsers, command


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = command(
        parsers,
        "requeue",
        "send running jobs back into the queue",
        "A running job saves, goes back into the queue and continues later; one that was requeued and waits\n"
        "for Slurm's two minutes may start at once.",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUN_HELP)
