"""The arguments of `stk drill`."""

from __future__ import annotations

from slurm.arguments.common import CONFIG_HELP, Parsers, cluster, command, json_option


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = command(
        parsers,
        "drill",
        "prove on this cluster that an interrupted run comes back",
        "Interrupt a run on purpose (preempted, out of time, killed, on another number of processes),\n"
        "compare its checkpoints with those of an undisturbed one, and print a verdict. Without CONFIG on a\n"
        "tiny task that needs no data. Exit code 0 where all came back with the same bytes, else 4.",
    )
    parser.add_argument("config", nargs="?", metavar="CONFIG", help=CONFIG_HELP)
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="set a key of the experiment")
    cluster(parser)
    parser.add_argument("--procs", type=int, default=2, metavar="N", help="local processes (default 2)")
    parser.add_argument("--keep", action="store_true", help="keep the drill's runs even if all is well")
    json_option(parser)
