"""Arguments that several commands share, and the warnings of commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn, TypeAlias

from toolkit.errors import SlurmUnavailable, StkError, UserError
from toolkit.run.run_dir import RunDir, experiment_dir
from toolkit.system.output.sanitize import clean

CONFIG_HELP = "experiment file (YAML)"
RUN_HELP = "a run: its folder, its id, or a unique prefix of the id"

#: Epilog of the commands that accept a user's command.
_WORDS = """
Instead of CONFIG give your own command after two dashes:
  {}
"""
#: The commands that accept a user's command after `--`, each with an example.
TAKE_WORDS = {
    **{name: f"stk {name} -- python train.py --lr 1e-3" for name in ("plan", "submit", "run")},
    "sweep": "stk sweep params.lr=1e-3,1e-4 -- python train.py",
}

_SETS_KEYS = ("plan", "check", "submit", "sweep", "run", "prepare")
#: Commands that execute code of a run's folder, or copy it for execution.
_EXECUTE = (
    "submit", "sweep", "run", "resume", "evaluate", "predict", "serve", "export", "replay", "prepare",
    "drill",
)  # fmt: skip
_TRUST_HELP = (
    "execute code in the run's folder even if another user owns it or may write it; "
    "--trust-folder=FOLDER: in FOLDER and below, * for every folder"
)
_KEYS = """\
Any key of the experiment can be set: key.path=value, for example
  resources.nodes=2 resources.gres=gpu:2 train.epochs=3 optimizer.betas=[0.9,0.95]
"""
_AUTO_HELP = "auto (default): Slurm if a controller answers, else processes on this machine"

#: The type of the result of add_subparsers, for which argparse has no public name.
Parsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


class Parser(argparse.ArgumentParser):
    """A parser with a pointer to --help after each error."""

    def error(self, message: str) -> NoReturn:
        if message.endswith(": CONFIG"):
            message = (
                "CONFIG is missing: give an experiment file such as configs/quickstart.yaml, or your own "
                "command after two dashes"
            )
        super().error(f"{message}\n{self.prog} --help says more")


def command(parsers: Parsers, name: str, summary: str, description: str) -> argparse.ArgumentParser:
    """Add a command of `stk`, which is implemented in the module of the same name."""
    parser = parser_of(parsers, name, summary, description)
    if name in _SETS_KEYS:
        parser.epilog = _KEYS + (_WORDS.format(TAKE_WORDS[name]) if name in TAKE_WORDS else "")
    if name in _EXECUTE:
        add_trust_folder(parser)
    return parser


def parser_of(parsers: Parsers, name: str, summary: str, description: str) -> argparse.ArgumentParser:
    """Add a command without arguments."""
    parser: argparse.ArgumentParser = parsers.add_parser(
        name, help=summary, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(command=name, parser=parser)
    return parser


def add_trust_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trust-folder", action="append", nargs="?", const="", default=[], metavar="FOLDER", help=_TRUST_HELP
    )


def experiment(
    parser: argparse.ArgumentParser,
    *,
    nargs: str | None = None,
    config_help: str = CONFIG_HELP,
    metavar: str = "key=value",
    help: str = "set a key of the experiment",
) -> None:
    """Add an experiment file and overrides of its keys."""
    parser.add_argument("config", nargs=nargs, metavar="CONFIG", help=config_help)
    parser.add_argument("overrides", nargs="*", default=[], metavar=metavar, help=help)


def new_code_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--new-code", action="store_true", help="use the current code; without it a run keeps its own copy"
    )


def cluster(parser: argparse.ArgumentParser, default: str = "auto", help: str = _AUTO_HELP) -> None:
    parser.add_argument("--cluster", choices=("auto", "slurm", "local"), default=default, help=help)


def positive(text: str) -> int:
    """Parse an argument as a whole number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def do_each(runs: Iterable[RunDir], action: Callable[[RunDir], str]) -> int:
    """Call `action` for each run and print its result; return the highest exit code.

    Raises SlurmUnavailable: for each run the answer would be waited for again.
    """
    worst = 0
    for run in runs:
        try:
            print(f"{run.run_id}: {action(run)}")
        except SlurmUnavailable:
            raise
        except StkError as error:
            # An error in one run does not stop the others.
            worst = max(worst, report_error(error))
    return worst


def report_error(error: StkError) -> int:
    """Print an error on standard error; return its exit code."""
    from toolkit.config.secrets import concealed  # only for an error

    # The message may quote a folder name of another user, or a secret value of the experiment.
    print(f"error: {clean(concealed(str(error)))}", file=sys.stderr)
    return error.exit_code


def warn(lines: Iterable[str]) -> None:
    """Print each warning once, on standard error: standard output is for the result."""
    for line in dict.fromkeys(lines):
        print(f"warning: {line}", file=sys.stderr)


def experiment_file(name: str) -> Path:
    """Return the path of an experiment file. Raises UserError if this is the id or the folder of a run."""
    path = Path(name)
    run = RunDir(experiment_dir() / path.name)
    is_named = name == path.name or path.resolve() == run.path
    if is_named and not path.is_file() and run.config.is_file():
        how = f"`stk resume {run.run_id}` continues it"
        raise UserError(f"{name} is a run, expected an experiment file: {how}")
    return path
