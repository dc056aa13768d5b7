"""The arguments of `stk evaluate`."""

from __future__ import annotations

import argparse
from pathlib import Path

from slurm.arguments.common import RUN_HELP, Parsers, command
from toolkit.errors import UserError

_SUMMARY = "score a finished run's best weights again, or predictions of spelling"

_DESCRIPTION = """\
Score the best checkpoint of a finished run on another file of its task's format, with the run's
own code, labels and vocabulary; without --data on its own test set. The results lie in a folder
below the run's, and are found there when the same is asked again.

  stk evaluate RUN --data other.csv

On benchmarks of spelling: score predictions that lie in files, those of many models, and finished runs
beside them. Without RUN also a single file of predictions.

  stk evaluate --benchmark FOLDER --baselines --markdown scores.md
  stk evaluate RUN RUN --benchmark FOLDER
  stk evaluate --kind sec --input corrupt.txt --gold correct.txt --prediction mine.txt
"""

_BENCHMARKS = """\
FOLDER/KIND/GROUP/SPLIT/corrupt.txt and correct.txt, with predictions in that folder's
predictions/MODEL.txt or in FOLDER/KIND/results/GROUP/SPLIT/MODEL.txt; KIND is one of sed_words,
sed_sequence, sec, tokenization_repair. The best of each column is in bold. Exit code 2 if
a file of predictions is not as it should be; the others are scored."""

_SINGLE = """\
One line of each file for each text. sed_words: 0 (right) or 1 (wrong) for each word of the input;
sed_sequence: for the line; sec and tokenization_repair: texts."""


def add(parsers: Parsers) -> None:
    """Add the command: a finished run, a folder of benchmarks, a single prediction."""
    parser = command(parsers, "evaluate", _SUMMARY, _DESCRIPTION)
    parser.add_argument("run", nargs="?", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "overrides", nargs="*", metavar="key=value", help="how the file is read: data.text_column=body"
    )
    parser.add_argument("--data", metavar="FILE", help="the file to score (default: the run's own data)")
    parser.add_argument("--entity-db", metavar="DIR", help="other entities, for entity disambiguation")
    parser.add_argument(
        "--split", metavar="NAME", help="of the run's own data (default: test, or validation without one)"
    )
    parser.add_argument("--output", metavar="DIR", help="folder of the results (default: in the run's)")
    parser.add_argument("--procs", type=int, default=1, metavar="N", help="processes (default 1)")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    _add_benchmarks(parser.add_argument_group("benchmarks of spelling", _BENCHMARKS))
    _add_single(parser.add_argument_group("a single prediction of spelling", _SINGLE))


def _add_benchmarks(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--benchmark", type=Path, metavar="FOLDER", help="score all predictions below it")
    group.add_argument(
        "--baselines",
        action="store_true",
        help="also score doing nothing, words out of the dictionary, symspell",
    )
    group.add_argument(
        "--dictionary",
        type=Path,
        metavar="FILE",
        help="word<TAB>frequency: tells errors apart that are words themselves, and is what the baselines "
        "know (default for them: symspell's 82,834 English words)",
    )
    group.add_argument("--markdown", type=Path, metavar="FILE", help="write all tables there, in Markdown")
    group.add_argument("--latex", type=Path, metavar="FILE", help="write all tables there, for LaTeX")


def _add_single(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--kind",
        choices=("sed_words", "sed_sequence", "sec", "tokenization_repair"),
        help="what is predicted",
    )
    group.add_argument("--input", type=Path, metavar="FILE", help="the texts with errors")
    group.add_argument("--gold", type=Path, metavar="FILE", help="what is right")
    group.add_argument("--prediction", type=Path, metavar="FILE", help="what is to be scored")
    group.add_argument(
        "--lowercase-file",
        type=Path,
        metavar="FILE",
        help="a 1 for each line in which upper and lower case are not told apart, else a 0",
    )


#: What belongs to each way of asking: of a folder of benchmarks, of a run, of a single prediction.
_WAYS = {
    "benchmark": ("benchmark", "baselines", "dictionary", "markdown", "latex", "run", "overrides"),
    "run": ("run", "overrides", "data", "entity_db", "split", "output"),
    "kind": ("kind", "input", "gold", "prediction", "lowercase_file", "dictionary"),
}


def check_one_way(arguments: argparse.Namespace) -> None:
    """Raise UserError unless what is given belongs to one way of asking."""
    ways = [way for way in _WAYS if getattr(arguments, way)]
    if not ways:
        raise UserError("nothing to score: name a RUN, or give --benchmark FOLDER or --kind KIND; see --help")
    given = {name for names in _WAYS.values() for name in names if getattr(arguments, name)}
    if others := sorted(given.difference(_WAYS[ways[0]])):
        told = ", ".join(map(_option, others))
        raise UserError(f"{_option(ways[0])} does not go with {told}: leave one of them out")


def _option(name: str) -> str:
    """A name as it is written on the command line."""
    plain = {"run": "RUN", "overrides": "key=value"}
    return plain.get(name, f"--{name.replace('_', '-')}")
