"""The arguments of `stk reproduce`."""

from __future__ import annotations

from slurm.arguments.common import RUN_HELP, Parsers, command

_DESCRIPTION = """\
Write a bash script that repeats a run from its folder: with its own code, config and seed. Refused where
its data or a model have changed or are gone; the script looks again before it submits anything, and that
`stk plan` makes the run's own identity.

  stk reproduce RUN --output repeat.sh
  bash repeat.sh run                        or, as a job: bash repeat.sh
"""


def add(parsers: Parsers) -> None:
    """Add the command."""
    parser = command(parsers, "reproduce", "write a script that repeats a run", _DESCRIPTION)
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--output", metavar="FILE", help="the script (default: standard output)")
    parser.add_argument(
        "--force", action="store_true", help="also where a model was written to since the run began"
    )
