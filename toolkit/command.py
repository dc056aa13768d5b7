"""A workload's part of the command line: its own commands, and options of `stk evaluate`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from toolkit.errors import DataError, UserError


class Host(Protocol):
    """The program that runs a command."""

    def find_run(self, name: str) -> Path:
        """Find the folder of a run by its folder, id, or a unique prefix of the id. Raises RunNotFound."""

    def process(
        self, run_dir: Path, module: str, request: str, *earlier: str
    ) -> tuple[list[str], dict[str, str]]:
        """Return command line and environment of a module that runs with a run's own code.

        earlier   names of the module in earlier versions, the newest first

        The module is called with the run's folder and the request. The installed code is used if the run
        is older than the module.
        """


#: Runs a command with its parsed arguments; returns the exit code.
Run: TypeAlias = Callable[[Namespace, Host], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of `stk`.

    summary        a line for `stk --help`
    description    text of `stk NAME --help` before the arguments
    add_arguments  adds the arguments to a parser; one with the metavar RUN is completed with existing runs
    run            "module:function" of a Run, imported when the command is called
    executes_run   whether it executes code of a run's folder: it then has --trust-folder
    """

    summary: str
    description: str
    add_arguments: Callable[[ArgumentParser], None]
    run: str
    executes_run: bool = False


@dataclass(frozen=True, slots=True)
class Action:
    """An action of a command, such as `status` of `stk sweep`; its fields are those of a command."""

    summary: str
    description: str
    add_arguments: Callable[[ArgumentParser], None]


def add_actions(parser: ArgumentParser, actions: Mapping[str, Action]) -> None:
    """Add actions to the parser of a command; `arguments.action` will name the one that is called."""
    added = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    for name, action in actions.items():
        one = added.add_parser(
            name,
            help=action.summary,
            description=action.description,
            formatter_class=RawDescriptionHelpFormatter,
        )
        one.set_defaults(action=name)
        action.add_arguments(one)


def add_json(parser: ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")


def add_number(parser: ArgumentParser, name: str, default: int | None, help_: str) -> None:
    """Add an option with a whole number; its help names the default."""
    shown = "" if default is None else f" (default {default})"
    parser.add_argument(name, type=int, default=default, metavar="N", help=help_ + shown)


def run_action(arguments: Namespace, actions: Mapping[str, Callable[[Namespace], None]]) -> int:
    """Run the action that is called. Raises DataError if a file cannot be read or written."""
    try:
        actions[arguments.action](arguments)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(f"{error.filename or 'a file'}: {error.strerror or error}") from error
    return 0


def check_positive(arguments: Namespace, *names: str) -> None:
    """Raise UserError for a number below 1; an option that is not given is None."""
    for name in names:
        value = getattr(arguments, name)
        if value is not None and value < 1:
            raise UserError(f"--{name.replace('_', '-')} is {value}, expected 1 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateMode:
    """A mode of `stk evaluate` that scores something other than a run.

    option  name of the argument that selects it
    takes   names of the arguments that belong to it
    run     "module:function" of a Run
    """

    option: str
    takes: tuple[str, ...]
    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateOptions:
    """Options that a workload adds to `stk evaluate`.

    add_arguments  adds the options to the parser
    description    their text in `stk evaluate --help`
    modes          other things that can be scored
    run_options    names of the options that apply to a run
    overrides      returns key=value for the keys of the run's data section that these set
    """

    add_arguments: Callable[[ArgumentParser], None]
    description: str = ""
    modes: tuple[EvaluateMode, ...] = ()
    run_options: tuple[str, ...] = ()
    overrides: Callable[[Namespace], Sequence[str]] = lambda arguments: ()
