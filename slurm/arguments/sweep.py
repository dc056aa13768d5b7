"""The arguments of `stk sweep`, which makes many runs of one experiment file."""

from __future__ import annotations

import argparse

SUMMARY = "submit every combination of values as one job array"
DESCRIPTION = """\
A run for each combination of the values that keys list, as one job array:

  stk sweep CONFIG seed=1,2,3 optimizer.lr=0.1,0.01     six runs
  stk sweep CONFIG model.kernels=[2],[2,3] --dry-run    two, and only shown: a comma in brackets or
                                                        quotes separates nothing

Each is the very run that `stk submit` would make of its values; those that have finished or are live
are left out. All are checked first, and nothing is submitted if one has a fault. The resources are the
same for all. Without Slurm the runs are trained here, one after the other.
"""


def positive(text: str) -> int:
    """A whole number from 1, as an argument."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def add_arguments(parser: argparse.ArgumentParser, config_help: str) -> None:
    """Add what only `stk sweep` takes."""
    parser.add_argument("config", metavar="CONFIG", help=config_help)
    parser.add_argument(
        "overrides", nargs="*", metavar="key=a,b", help="set a key of the experiment to each of these values"
    )
    parser.add_argument(
        "--max-parallel",
        type=positive,
        metavar="N",
        help="tasks that run at the same time (default: resources.max_parallel)",
    )
    parser.add_argument("--dry-run", action="store_true", help="show the runs, and do nothing")
