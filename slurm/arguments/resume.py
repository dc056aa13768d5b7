"""The arguments of `stk resume`."""

from __future__ import annotations

from slurm.arguments.common import RUN_HELP, Parsers, cluster, command, json_option


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = command(
        parsers,
        "resume",
        "put an ended run back to work",
        "Continue a run from its latest good checkpoint, with its own code and config.",
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--force",
        action="store_true",
        help="also from checkpoints of another experiment or of data that have changed since; "
        "damaged ones are never used",
    )
    cluster(parser)
    json_option(parser)
