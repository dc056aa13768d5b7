"""`stk evaluate` on benchmarks of spelling: files of predictions, and finished runs.

The code that computes scores takes long to import, so it is imported only when it is needed.
"""

from __future__ import annotations

import argparse
import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.command import EvaluateMode, EvaluateOptions, Host
from toolkit.errors import StkError, UserError
from toolkit.exit_codes import ExitCode
from toolkit.files import write_atomic
from toolkit.run.run_dir import RunDir
from toolkit.system.output.json_text import json_text
from toolkit.system.output.sanitize import clean
from toolkit.workloads.spelling.benchmarks.kinds import KINDS
from toolkit.workloads.spelling.data.texts.text_files import writing

if TYPE_CHECKING:
    from toolkit.workloads.spelling.benchmarks.scoring import Predictors, Result


_DESCRIPTION = """\
Benchmarks of spelling: score files of predictions of many models, together with finished runs; or, without
RUN, a single file of predictions.

  stk evaluate --benchmark FOLDER --baselines --markdown scores.md
  stk evaluate RUN RUN --benchmark FOLDER
  stk evaluate --kind sec --input corrupt.txt --gold correct.txt --prediction mine.txt
"""

_BENCHMARKS = """\
FOLDER/KIND/GROUP/SPLIT/corrupt.txt and correct.txt, with predictions in that folder's
predictions/MODEL.txt or in FOLDER/KIND/results/GROUP/SPLIT/MODEL.txt; KIND is one of sed_words,
sed_sequence, sec, tokenization_repair. The best value of each column is in bold. Exit code 2 if
a file of predictions is invalid, 4 if a run has not finished or fails; all others are scored."""

_SINGLE = """\
One line per text in each file. sed_words: 0 (right) or 1 (wrong) for each word of the input;
sed_sequence: 0 or 1 for the line; sec and tokenization_repair: texts."""


def _add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("benchmarks of spelling", _BENCHMARKS)
    group.add_argument("--benchmark", type=Path, metavar="FOLDER", help="score all predictions below it")
    group.add_argument(
        "--baselines",
        action="store_true",
        help="also score three baselines: do nothing, out of dictionary, symspell",
    )
    group.add_argument(
        "--dictionary",
        type=Path,
        metavar="FILE",
        help="lines word<TAB>frequency: real-word errors are scored separately, and the baselines use these "
        "words (their default: symspell's 82,834 English words)",
    )
    group.add_argument(
        "--lowercase",
        action="store_true",
        help="ignore case in texts, for benchmarks in lower case such as bea322 and bea4660",
    )
    group.add_argument("--markdown", type=Path, metavar="FILE", help="write all tables to FILE, in Markdown")
    group.add_argument("--latex", type=Path, metavar="FILE", help="write all tables to FILE, for LaTeX")
    group = parser.add_argument_group("a single prediction of spelling", _SINGLE)
    group.add_argument("--kind", choices=tuple(KINDS), help="kind of the predictions")
    group.add_argument("--input", type=Path, metavar="FILE", help="the texts with errors")
    group.add_argument("--gold", type=Path, metavar="FILE", help="the right texts or labels")
    group.add_argument("--prediction", type=Path, metavar="FILE", help="the predictions to score")
    group.add_argument(
        "--lowercase-file",
        type=Path,
        metavar="FILE",
        help="file with a 1 for each line in which case is ignored, else 0",
    )


def score_single(arguments: Namespace, host: Host) -> int:
    """Score one file of predictions and show its metrics. Raises UserError, DataError."""
    from toolkit.workloads.spelling.benchmarks.lines import read_lines
    from toolkit.workloads.spelling.benchmarks.parsing import open_sheet
    from toolkit.workloads.spelling.benchmarks.tables import figure_lines
    from toolkit.workloads.spelling.progress_bar import progress_bar

    missing = [f"--{name}" for name in ("input", "gold", "prediction") if getattr(arguments, name) is None]
    if missing:
        raise UserError(f"--kind {arguments.kind} also needs {', '.join(missing)}")
    if arguments.lowercase and arguments.lowercase_file:
        raise UserError("--lowercase is for all lines, --lowercase-file for some: leave one of them out")
    sheet = open_sheet(
        arguments.kind,
        arguments.input,
        arguments.gold,
        lowercase=arguments.lowercase or arguments.lowercase_file,
        dictionary=_dictionary(arguments),
    )
    predictions = read_lines(arguments.prediction)
    with progress_bar("scoring", len(sheet.inputs)) as update:
        figures = sheet.score(predictions, str(arguments.prediction), lambda lines: update(advance=lines))
    if arguments.json:
        print(json.dumps({"kind": arguments.kind, "lines": len(predictions), "metrics": figures}))
    else:
        print("\n".join(figure_lines(arguments.kind, figures)))
    return 0


def score_folder(arguments: Namespace, host: Host) -> int:
    """Score all predictions of a folder and show tables; return the exit code.

    Invalid files and runs without predictions are reported below the tables of the others.
    """
    from toolkit.workloads.spelling.benchmarks.layout import find_benchmarks
    from toolkit.workloads.spelling.benchmarks.scoring import Result, entries, score_entries
    from toolkit.workloads.spelling.commands.benchmark_runs import predict
    from toolkit.workloads.spelling.progress_bar import progress_bar

    benchmarks = find_benchmarks(arguments.benchmark)
    names = [arguments.run, *arguments.overrides] if arguments.run else []
    runs = [RunDir(host.find_run(name)) for name in names]
    dictionary = _dictionary(arguments)
    predictors: Predictors = {}
    if arguments.baselines:
        from toolkit.workloads.spelling.benchmarks.baselines import baselines, english_words

        predictors = baselines(english_words() if dictionary is None else dictionary)
    predicted, unused = predict(runs, benchmarks, host, partial(print, file=sys.stderr, flush=True))
    wanted = entries(benchmarks, predictors, predicted)
    if not wanted and not unused:
        raise UserError(
            f"{arguments.benchmark} has no predictions; expected predictions/MODEL.txt beside "
            f"{benchmarks[0].corrupt}, a RUN, or --baselines"
        )
    found: list[Result | UserError] = []
    with progress_bar("scoring", len(wanted)) as update:
        for each in score_entries(
            wanted,
            dictionary=dictionary,
            lowercase=arguments.lowercase,
            advance=lambda share: update(advance=share),
        ):
            found.append(each)
            update(completed=len(found))
    results = [each for each in found if isinstance(each, Result)]
    faults = [each for each in found if not isinstance(each, Result)]
    _show(results, faults, unused, arguments)
    for fault in (*faults, *unused):
        print(f"error: {clean(str(fault))}", file=sys.stderr)
    return ExitCode.FAILED if unused else ExitCode.WRONG_INPUT if faults else 0


def _dictionary(arguments: Namespace) -> dict[str, int] | None:
    from toolkit.workloads.spelling.data.texts.dictionary import read_dictionary

    return None if arguments.dictionary is None else read_dictionary(arguments.dictionary)


def _show(
    results: Sequence[Result], faults: Sequence[UserError], unused: Sequence[StkError], arguments: Namespace
) -> None:
    from rich.console import Console

    from toolkit.report.rendering import markdown
    from toolkit.workloads.spelling.benchmarks.tables import latex, tables, terminal

    if arguments.json:
        answer = {
            "results": [each.to_json() for each in results],
            "faults": [str(each) for each in faults],
            "unscored": [str(each) for each in unused],
        }
        print(json_text(answer))
    else:
        console = Console()
        for _, table in tables(results, headlines=True):
            console.print(terminal(table))
    for path, render in ((arguments.markdown, markdown.table), (arguments.latex, latex)):
        # Without results, the files of an earlier call stay.
        if path is not None and results:
            with writing(path):
                write_atomic(path, "\n".join(render(table) for _, table in tables(results)))
            if not arguments.json:
                print(f"wrote {path}")


EVALUATE = EvaluateOptions(
    add_arguments=_add_options,
    description=_DESCRIPTION,
    modes=(
        EvaluateMode(
            option="benchmark",
            takes=("run", "overrides", "baselines", "dictionary", "lowercase", "markdown", "latex"),
            run="toolkit.workloads.spelling.commands.evaluate:score_folder",
        ),
        EvaluateMode(
            option="kind",
            takes=("input", "gold", "prediction", "lowercase", "lowercase_file", "dictionary"),
            run="toolkit.workloads.spelling.commands.evaluate:score_single",
        ),
    ),
)
