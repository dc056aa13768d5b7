"""The arguments of `stk logs`."""

from __future__ import annotations

import argparse

from slurm.arguments.common import RUN_HELP, Parsers, command, json_option, positive


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = command(
        parsers,
        "logs",
        "the logs of a run",
        "The log of one rank of the newest start; after a failure what failed first and what to do stand on\n"
        "top, and the log is that of the rank that failed first.",
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--rank", type=_rank, metavar="N", help="a rank, all, or batch: what the job itself said"
    )
    parser.add_argument(
        "--attempt", type=_attempt, default="newest", metavar="K", help="a start by its number, or all"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on while the run is live")
    parser.add_argument("--merge", action="store_true", help="the lines of all ranks, by time")
    parser.add_argument("--lines", type=positive, metavar="N", help="only the last N lines")
    parser.add_argument("--list", action="store_true", help="which starts and ranks have logs")
    parser.add_argument("--failure", action="store_true", help="only what failed, with its stack trace")
    json_option(parser)


def _rank(text: str) -> int | str:
    return text if text in ("all", "batch") else _number(text, 0, "a rank, all or batch")


def _attempt(text: str) -> int | str:
    return text if text in ("all", "newest") else _number(text, 1, "the number of a start, or all")


def _number(text: str, least: int, expected: str) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")
    return int(text)
