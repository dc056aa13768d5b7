"""The command `stk`: arguments in, exit code out. What it does stands in `slurm.commands`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Iterable, Sequence

from toolkit.errors import StkError

_DESCRIPTION = """\
One experiment file, from a laptop to a SLURM cluster.

  stk plan configs/quickstart.yaml                  show what would be done, touch nothing
  stk run configs/quickstart.yaml                   train here and now
  stk submit configs/quickstart.yaml                hand it to Slurm, or to this machine
  stk status                                        where everything stands
"""

#: In the order of --help.
_COMMANDS = (
    "plan",
    "submit",
    "sweep",
    "run",
    "resume",
    "status",
    "logs",
    "report",
    "evaluate",
    "cancel",
    "clean",
    "requeue",
    "watch",
    "prepare",
    "replay",
    "reproduce",
    "diff",
    "doctor",
    "drill",
    "entities",
    "spelling",
    "use",
    "completion",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, 2 (input), 3 (Slurm), 4 (run failed), 130."""
    arguments = _parse(argv)
    try:
        # Late, so that a command pays for no other's imports.
        command = importlib.import_module(f"slurm.commands.{arguments.command}")
        code = int(command.run(arguments))
        # Here, where a reader that has gone is caught, and not when the interpreter ends.
        sys.stdout.flush()
        return code
    except StkError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parsed arguments; key=value and further runs may also stand after options, which argparse refuses."""
    words = sys.argv[1:] if argv is None else argv
    # All parsers together take as long to make as an experiment to check.
    parser = make_parser([word for word in words[:1] if word in _COMMANDS] or _COMMANDS)
    arguments, rest = parser.parse_known_args(words)
    lists = [getattr(arguments, name) for name in ("overrides", "runs") if hasattr(arguments, name)]
    if rest and (not lists or any(word.startswith("-") for word in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest and getattr(arguments, "then", None):
        parser.error(f"{rest[0]}: key=value stands right behind the file that it is for, before any option")
    for known in lists:
        known.extend(rest)
    return arguments


class _Version(argparse.Action):
    """Look the version up only when asked: the look-up costs as much as reading a config."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib import metadata

        parser.exit(message=f"slurm-toolkit {metadata.version('slurm-toolkit')}\n")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Leaves room for the names of commands: argparse forgets that these stand two columns further in."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._action_max_length = max(map(len, _COMMANDS)) + 4


def make_parser(commands: Iterable[str] = _COMMANDS) -> argparse.ArgumentParser:
    """Commands and their arguments."""
    parser = argparse.ArgumentParser(prog="stk", description=_DESCRIPTION, formatter_class=_Help)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    parsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name in commands:
        importlib.import_module(f"slurm.arguments.{name}").add(parsers)
    return parser
