"""The arguments of `stk doctor`."""

from __future__ import annotations

from slurm.arguments.common import CONFIG_HELP, Parsers, cluster, command, json_option


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = command(
        parsers,
        "doctor",
        "what this cluster and this machine can do, and what follows for a job",
        "Ask the cluster, this machine and its file systems what a job can expect here, and say of each\n"
        "thing whether it is fine or what to change. With CONFIG also whether that experiment fits. Needs\n"
        "no rights and submits nothing, unless --on-node is given. Exit code 0 whatever is found.",
    )
    parser.add_argument("config", nargs="?", metavar="CONFIG", help=CONFIG_HELP)
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="set a key of the experiment")
    parser.add_argument(
        "--on-node",
        action="store_true",
        help="also look at a host of the cluster, in a job of one task that waits at most a minute for it",
    )
    parser.add_argument(
        "--partition", metavar="NAME", help="show this one alone, and ask there with --on-node"
    )
    cluster(parser, help="auto (default): Slurm where a controller answers; local: this machine alone")
    json_option(parser)
