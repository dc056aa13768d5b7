"""The arguments of `stk diff`."""

from __future__ import annotations

from slurm.arguments.common import RUN_HELP, Parsers, command, json_option


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = command(
        parsers,
        "diff",
        "find the first step at which two runs differ",
        "Compare two runs step by step: samples, losses, weights, and what may explain a difference.\n"
        "Exit code 0 where they are equal as far as both go, 1 where they differ.",
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("other", metavar="RUN", help="the run to compare it with")
    json_option(parser)
