"""The parser of `stk`, with all commands or only the called one."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any

from slurm.commands.common import Parser

_DESCRIPTION = """\
One experiment file, from a laptop to a SLURM cluster.

  stk plan configs/quickstart.yaml                  show what would be done, change nothing
  stk run configs/quickstart.yaml                   train here and now
  stk submit configs/quickstart.yaml                submit it to Slurm, or run it on this machine
  stk status                                        show the state of runs
"""

#: The commands of the core, in the order of --help, each with its package in `slurm.commands`.
COMMANDS = {
    **dict.fromkeys(("plan", "check", "submit", "sweep", "run", "resume"), "experiments"),
    **dict.fromkeys(("status", "logs"), "runs"),
    **dict.fromkeys(("report", "evaluate", "predict", "serve", "export"), "results"),
    **dict.fromkeys(("cancel", "clean", "requeue", "watch"), "runs"),
    "prepare": "experiments",
    **dict.fromkeys(("replay", "reproduce", "diff"), "results"),
    **dict.fromkeys(("doctor", "drill", "schema", "completion"), "setup"),
}


def import_module(command: str, module: str) -> Any:
    return importlib.import_module(f"slurm.commands.{COMMANDS[command]}.{module}")


def parser_for(word: str) -> argparse.ArgumentParser:
    """Return the parser of a command; exit with code 2 if the command does not exist.

    Only the parser of this command is made: all parsers would take as long as checking an experiment.
    """
    if word in COMMANDS:
        return make_parser([word])
    if word in ("", "--version"):
        return make_parser([])
    if word.startswith("-"):
        return make_parser()
    from slurm.commands import workloads

    if word in workloads.names():
        return make_parser([word])
    from toolkit.system.output.nearest import nearest

    guess = nearest(word, [*COMMANDS, *workloads.names()])
    make_parser([]).error(f"there is no command {word!r}" + (f": did you mean {guess}?" if guess else ""))


class _Version(argparse.Action):
    """Print the version. The look-up is deferred because it takes as long as reading a config."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from toolkit.system.distributions import distribution

        parser.exit(message=f"slurm-toolkit {distribution('slurm-toolkit').field('Version')}\n")


class _Help(argparse.RawDescriptionHelpFormatter):
    """A formatter that puts the commands of each workload under a heading.

    headings   text above a command, by the command's name
    """

    def __init__(self, prog: str, *, names: Iterable[str], headings: Mapping[str, str]) -> None:
        super().__init__(prog)
        self._headings = headings
        # argparse forgets that the names of commands are indented by two more columns.
        self._action_max_length = max(map(len, names), default=0) + 4

    def _format_action(self, action: argparse.Action) -> str:
        heading = self._headings.get(action.dest)
        return (f"\n{heading}:\n" if heading else "") + super()._format_action(action)


def make_parser(only: Collection[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands, or only of these, with their arguments.

    If a name exists several times, the core's command is taken, or that of the first workload.
    """
    parser: argparse.ArgumentParser = Parser(prog="stk", description=_DESCRIPTION)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    parsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name in COMMANDS:
        if only is None or name in only:
            getattr(import_module(name, "arguments"), name)(parsers)
    headings: dict[str, str] = {}
    # Looking workloads up takes half as long as the rest of `stk --help`.
    if only is None or not set(COMMANDS).issuperset(only):
        from slurm.commands import workloads

        headings = workloads.add(parsers, only)
    parser.formatter_class = partial(_Help, names=parsers.choices, headings=headings)
    return parser
