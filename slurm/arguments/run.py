"""The arguments of `stk run`."""

from __future__ import annotations

import argparse

from slurm.arguments.common import CONFIG_HELP, Parsers, command, json_option


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = command(
        parsers,
        "run",
        "train here and now",
        "Train in the foreground, in processes on this machine: a laptop, or the shell of an interactive\n"
        "srun or salloc. As a task of `srun -n 4 stk run …`, or under torchrun, this is one of the ranks.\n"
        "Ctrl-C saves and leaves; a second Ctrl-C leaves at once.",
    )
    parser.add_argument("config", metavar="CONFIG", help=CONFIG_HELP + ", or a run to go on with")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="set a key of the experiment")
    parser.add_argument(
        "--procs", type=int, metavar="N", help="processes (default: resources.tasks_per_node)"
    )
    parser.add_argument("--gpus", type=int, metavar="N", help="a process on each of the N least busy GPUs")
    parser.add_argument(
        "--world-size", type=int, metavar="N", help="refuse to start if there are not so many ranks"
    )
    parser.add_argument("--fresh", action="store_true", help="put the run's folder aside and start anew")
    json_option(parser)
    _machines(parser)


def _machines(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "several machines by hand", "the same command on each of them, but for its number"
    )
    group.add_argument("--node-rank", type=int, metavar="K", help="which machine this is, counted from 0")
    group.add_argument("--nnodes", type=int, metavar="N", help="how many machines there are")
    group.add_argument("--master-addr", metavar="HOST", help="name or address of machine 0")
    group.add_argument("--master-port", type=int, metavar="P", help="where they meet there (default 29500)")
    group.add_argument(
        "--gpus-per-node",
        metavar="A,B,…",
        help="processes of each machine, one per GPU, in their order; one number for all",
    )
