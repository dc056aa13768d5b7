"""The arguments of `stk clean`."""

from __future__ import annotations

import argparse
import re

from slurm.arguments.common import RUN_HELP, Parsers, command, json_option

_DESCRIPTION = """\
Delete old checkpoints of runs that have ended, after a look at what would go. Never goes: the best
checkpoint, the newest good one of a run that has not finished, one that another run begins with, anything
of a live run.

  stk clean --dry-run                       what there is, of all runs under STK_EXPERIMENT_DIR
  stk clean RUN --keep-last 0               of a finished run only the best stays
  stk clean --state finished --older-than 7d --logs --old --yes
"""
_UNITS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = command(parsers, "clean", "delete old checkpoints, after a preview", _DESCRIPTION)
    parser.add_argument("runs", nargs="*", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--keep-last",
        type=_count,
        default=1,
        metavar="N",
        help="newest checkpoints that stay, besides the best (default 1)",
    )
    parser.add_argument(
        "--older-than", type=_age_s, default=0.0, metavar="AGE", help="nothing younger: 30m, 12h, 7d, 2w"
    )
    parser.add_argument(
        "--state",
        action="append",
        choices=("finished", "failed", "cancelled", "held"),
        help="only runs in this state; may be given several times (default: all that have ended)",
    )
    parser.add_argument("--logs", action="store_true", help="also logs of earlier starts")
    parser.add_argument("--old", action="store_true", help="also runs that --fresh has set aside, whole")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--dry-run", action="store_true", help="show what would go, and do nothing")
    how.add_argument("--yes", action="store_true", help="delete without a question")
    json_option(parser)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0")
    return int(text)


def _age_s(text: str) -> float:
    """Seconds of an age such as 7d."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([mhdw])", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text} is no age: expected a number and m, h, d or w, such as 7d")
    return float(match[1]) * _UNITS[match[2]]
