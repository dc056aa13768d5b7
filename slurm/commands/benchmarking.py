"""`stk evaluate` on benchmarks of spelling: predictions that lie in files, and those of finished runs.

What scores them takes a while to import, so that is done when it is needed.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import DataError, UserError
from toolkit.files import write_atomic

if TYPE_CHECKING:
    from toolkit.benchmarks.scoring import Entry, Predictors, Result


def score_single(arguments: Namespace) -> int:
    """Score one file of predictions and show its metrics. Raises UserError, DataError."""
    from toolkit.benchmarks.lines import read_lines
    from toolkit.benchmarks.rendering import figure_lines
    from toolkit.benchmarks.sheets import open_sheet

    missing = [f"--{name}" for name in ("input", "gold", "prediction") if getattr(arguments, name) is None]
    if missing:
        raise UserError(f"--kind {arguments.kind} also needs {', '.join(missing)}")
    sheet = open_sheet(
        arguments.kind,
        arguments.input,
        arguments.gold,
        lowercase=arguments.lowercase_file,
        dictionary=_dictionary(arguments),
    )
    predictions = read_lines(arguments.prediction)
    with _progress("scoring", len(sheet.inputs)) as (_, tell):
        figures = sheet.score(predictions, str(arguments.prediction), tell)
    if arguments.json:
        print(json.dumps({"kind": arguments.kind, "lines": len(predictions), "metrics": figures}))
    else:
        print("\n".join(figure_lines(arguments.kind, figures)))
    return 0


def score_folder(arguments: Namespace) -> int:
    """Score all predictions of a folder and show tables; return the exit code.

    What is wrong with some of them is told below the tables of the others.
    """
    from slurm.benchmark_runs import predict
    from toolkit.benchmarks.layout import find_benchmarks
    from toolkit.benchmarks.scoring import Result, entries

    benchmarks = find_benchmarks(arguments.benchmark)
    runs = [arguments.run, *arguments.overrides] if arguments.run else []
    wanted = entries(benchmarks, _predictors(arguments), predict(runs, benchmarks, _tell))
    if not wanted:
        raise UserError(
            f"{arguments.benchmark} has no predictions; expected predictions/MODEL.txt beside "
            f"{benchmarks[0].corrupt}, a RUN, or --baselines"
        )
    found = _score(wanted, arguments)
    results = [each for each in found if isinstance(each, Result)]
    faults = [each for each in found if not isinstance(each, Result)]
    _show(results, faults, arguments)
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    return UserError.exit_code if faults else 0


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _predictors(arguments: Namespace) -> Predictors:
    """What makes predictions for the benchmarks by itself."""
    if not arguments.baselines:
        return {}
    from toolkit.benchmarks.baselines import baselines, english_words

    return baselines(_dictionary(arguments) or english_words())


def _dictionary(arguments: Namespace) -> dict[str, int] | None:
    from toolkit.spelling.dictionary import read_dictionary

    return None if arguments.dictionary is None else read_dictionary(arguments.dictionary)


def _score(wanted: Sequence[Entry], arguments: Namespace) -> list[Result | UserError]:
    from toolkit.benchmarks.scoring import score_entries

    found: list[Result | UserError] = []
    with _progress("scoring", len(wanted)) as (say, tell):
        for each in score_entries(wanted, dictionary=_dictionary(arguments), tell=tell):
            found.append(each)
            say(len(found))
    return found


def _show(results: Sequence[Result], faults: Sequence[UserError], arguments: Namespace) -> None:
    from rich.console import Console

    from toolkit.benchmarks.rendering import latex, markdown, terminal
    from toolkit.benchmarks.tables import tables

    made = list(tables(results))
    for path, render in ((arguments.markdown, markdown), (arguments.latex, latex)):
        if path is not None:
            _write(path, render(made))
    if arguments.json:
        answer = {"results": [each.to_json() for each in results], "faults": [str(each) for each in faults]}
        print(json.dumps(answer, ensure_ascii=False))
        return
    console = Console()
    for table in made:
        if table.metric.headline:
            console.print(terminal(table))
    for path in (arguments.markdown, arguments.latex):
        if path is not None:
            print(f"wrote {path}")


def _write(path: Path, text: str) -> None:
    try:
        write_atomic(path, text)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error


@contextmanager
def _progress(what: str, total: int) -> Iterator[tuple[Callable[[float], None], Callable[[float], None]]]:
    """Show a bar on a terminal; yield what sets how far it is and what moves it on."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(None), TextColumn("{task.percentage:3.0f} %"))
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    bar = Progress(
        *columns, *times, console=console, transient=True, disable=not console.is_terminal, expand=True
    )
    with bar:
        task = bar.add_task(what, total=total)
        yield (
            lambda done: bar.update(task, completed=done),
            lambda more: bar.update(task, advance=more),
        )
