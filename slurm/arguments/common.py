"""What the arguments of several commands share."""

from __future__ import annotations

import argparse
from typing import TypeAlias

CONFIG_HELP = "experiment file (YAML)"
RUN_HELP = "a run: its folder, its id, or a unique beginning of that"

_SETS_KEYS = ("plan", "submit", "sweep", "run", "prepare")
_KEYS = """\
Any key of the experiment can be set: key.path=value, for example
  resources.nodes=2 resources.gres=gpu:2 train.epochs=3 model.kernels=[2,3,4]
"""
_AUTO_HELP = "auto (default): Slurm where a controller answers, else processes on this machine"

#: argparse offers no public name for what add_subparsers gives.
Parsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def command(parsers: Parsers, name: str, summary: str, description: str) -> argparse.ArgumentParser:
    """Add a command of `stk`; what it does stands in the module of that name in `slurm.commands`."""
    parser: argparse.ArgumentParser = parsers.add_parser(
        name,
        help=summary,
        description=description,
        epilog=_KEYS if name in _SETS_KEYS else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=name)
    return parser


def experiment(parser: argparse.ArgumentParser) -> None:
    """Add an experiment file and what is set in it."""
    parser.add_argument("config", metavar="CONFIG", help=CONFIG_HELP)
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="set a key of the experiment")


def json_option(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")


def cluster(parser: argparse.ArgumentParser, default: str = "auto", help: str = _AUTO_HELP) -> None:
    """Add --cluster."""
    parser.add_argument("--cluster", choices=("auto", "slurm", "local"), default=default, help=help)


def positive(text: str) -> int:
    """A whole number from 1, as an argument."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number
