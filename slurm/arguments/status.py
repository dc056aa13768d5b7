"""The arguments of `stk status`."""

from __future__ import annotations

import argparse

from slurm.arguments.common import RUN_HELP, Parsers, command, json_option

_DESCRIPTION = """\
A table of runs: what each does or waits for, how far it is, its loss and main metric, restarts, hosts,
GPU-hours. As many columns as the terminal has room for; --json has all.
Without RUN: all under STK_EXPERIMENT_DIR.
"""


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = command(parsers, "status", "where everything stands", _DESCRIPTION)
    parser.add_argument("runs", nargs="*", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--live", action="store_true", help="only those that wait, run or are held")
    parser.add_argument(
        "--state", type=_states, default=frozenset(), metavar="LIST", help="only these, as running,failed"
    )
    parser.add_argument("--name", metavar="GLOB", help="only ids like this, as 'bert-*'")
    parser.add_argument("--sweep", metavar="GLOB", help="only runs of arrays with a name like this")
    parser.add_argument(
        "--since", type=_moment, metavar="TIME", help="only those that were active since: 2d, 3h, 2026-03-01"
    )
    parser.add_argument(
        "--sort",
        choices=("name", "state", "progress", "metric", "age", "gpu-hours"),
        default="name",
        help="in this order: by name (default), or the best, newest, furthest, most costly first",
    )
    parser.add_argument("--reverse", action="store_true", help="the other way round")
    json_option(parser)


def _states(text: str) -> frozenset[str]:
    from slurm.status.choosing import states  # late, so that other commands do not pay for it

    try:
        return states(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _moment(text: str) -> float:
    from slurm.status.choosing import moment

    try:
        return moment(text)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a span such as 2d, 3h or 30m, nor a date such as 2026-03-01"
        ) from None
