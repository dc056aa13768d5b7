"""The arguments of `stk plan`."""

from __future__ import annotations

from slurm.arguments.common import Parsers, command, experiment, json_option


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = command(
        parsers,
        "plan",
        "show the resolved experiment and the exact batch script",
        "Compose and check an experiment; print it resolved, and the batch script that submit would hand\n"
        "to Slurm. Touches nothing.",
    )
    experiment(parser)
    parser.add_argument(
        "--test-only",
        action="store_true",
        help="also ask Slurm whether it would accept the job, and when it would start",
    )
    json_option(parser)
