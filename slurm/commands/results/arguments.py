"""The arguments of the commands about results."""

from __future__ import annotations

from slurm.commands.common import RUN_HELP, Parsers, command, positive
from toolkit.analysis.prediction.formats import INPUTS, OUTPUTS
from toolkit.command import add_json
from toolkit.registry import evaluate_options

_REPORT = """\
For one run: tables here, with advice on resources; plots, page, Markdown, CSV and JSON in report/ of
its folder. For several runs, side by side: what differs, their scores, mean and deviation over seeds, and
the time and resources they used.
"""
_EVALUATE = """\
Score the best checkpoint of a finished run on another file of its task's format, with the run's own code,
labels and vocabulary; without --data on its own test set. The results are kept in a folder of the run,
and are reused by the same command.

  stk evaluate RUN --data other.csv
"""
_PREDICT = """\
Predict with the best weights of a finished run and its own code: one prediction for each row of FILE, in
their order. Without FILE rows are read from a pipe, and answered as soon as they arrive. Rows may be those of
a table (.csv, .tsv), JSON lines (.jsonl) or, where the task takes texts, plain lines (.txt).

  stk predict RUN reviews.csv --output predictions.csv
  echo '{"text": "a fine film"}' | stk predict RUN
  stk predict RUN --input-format lines < reviews.txt
"""
_EXPORT = """\
Copy the files that others need of a finished run into a new folder: best weights, experiment, code, and files
such as a vocabulary. `stk predict`, `stk evaluate --data` and `stk.load` accept the folder instead of a run.
Logs, metrics, reports and the optimizer's state are left out.
"""
_SERVE = """\
Predict over HTTP with the best weights of a finished run and its own code, until Ctrl-C. A request has rows
as JSON lines, and the printed token or that of STK_SERVE_TOKEN. The answer has a line for each row.

  curl -H "Authorization: Bearer TOKEN" --data-binary @rows.jsonl http://127.0.0.1:8000/predict
"""
_REPLAY = """\
Recompute one step from the run's folder, with the run's own code: its samples, learning rate and loss,
compared with the run's record of the step. Changes nothing. Exit code 1 if they differ.
"""
_REPRODUCE = """\
Write a bash script that repeats a run from its folder, with its own code, config and seed. Refused if
its data or a model have changed or are gone. Before it submits anything, the script checks the data again,
and that `stk plan` gives the run's own identity.

  stk reproduce RUN --output repeat.sh
  bash repeat.sh run                        or, as a job: bash repeat.sh
"""
_DIFF = """\
Compare two runs step by step: samples, losses, weights, and what may explain a difference.
Exit code 0 if all steps that both have are equal, else 1.
"""


def report(parsers: Parsers) -> None:
    parser = command(parsers, "report", "results: tables, plots, HTML", _REPORT)
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--output",
        metavar="PLACE",
        help="where the pages are written: FILE.html, or a folder for page, plots, Markdown, CSV and JSON",
    )
    add_json(parser)


def evaluate(parsers: Parsers) -> None:
    """Add `stk evaluate`: a finished run, and what else workloads can score."""
    added = evaluate_options()
    texts = [_EVALUATE, *(each.description for each in added if each.description)]
    parser = command(parsers, "evaluate", "score a finished run's best weights again", "\n".join(texts))
    parser.add_argument("run", nargs="?", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "overrides", nargs="*", metavar="key=value", help="how the file is read, such as data.KEY=VALUE"
    )
    parser.add_argument("--data", metavar="FILE", help="the file to score (default: the run's own data)")
    parser.add_argument(
        "--split", metavar="NAME", help="of the run's own data (default: test, or validation without one)"
    )
    parser.add_argument("--output", metavar="DIR", help="folder of the results (default: in the run's)")
    parser.add_argument("--procs", type=int, default=1, metavar="N", help="processes (default 1)")
    add_json(parser)
    for each in added:
        each.add_arguments(parser)


def predict(parsers: Parsers) -> None:
    parser = command(parsers, "predict", "predict with a finished run, rows in and predictions out", _PREDICT)
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("file", nargs="?", metavar="FILE", help="rows (default: standard input)")
    parser.add_argument(
        "--input-format",
        choices=INPUTS,
        help="how the rows are read (default: by the file's ending; a pipe as JSON lines)",
    )
    parser.add_argument(
        "--format",
        choices=OUTPUTS,
        help="how predictions are written (default: by the ending of --output; else as the rows are read, "
        "or JSON lines if the task's predictions differ in length)",
    )
    parser.add_argument(
        "--output", metavar="FILE", help="appears only when complete (default: standard output)"
    )
    parser.add_argument(
        "--batch-size", type=positive, metavar="N", help="most rows in a batch (default: as in evaluations)"
    )


def export(parsers: Parsers) -> None:
    parser = command(parsers, "export", "copy a finished run into a small folder, for others", _EXPORT)
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("folder", metavar="FOLDER", help="a folder that does not exist yet")


def serve(parsers: Parsers) -> None:
    parser = command(parsers, "serve", "predict over HTTP with a finished run", _SERVE)
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1: this machine alone)"
    )
    parser.add_argument(
        "--port", type=int, default=8000, metavar="N", help="port (default 8000; 0: any free one)"
    )
    parser.add_argument(
        "--batch-size", type=positive, metavar="N", help="most rows in a batch (default: as in evaluations)"
    )


def replay(parsers: Parsers) -> None:
    parser = command(parsers, "replay", "recompute any step of a run", _REPLAY)
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--step", type=int, required=True, metavar="N", help="which step, counted from 1")
    add_json(parser)


def reproduce(parsers: Parsers) -> None:
    parser = command(parsers, "reproduce", "write a script that repeats a run", _REPRODUCE)
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--output", metavar="FILE", help="the script (default: standard output)")
    parser.add_argument(
        "--force", action="store_true", help="also if a model's file or your code has changed since the start"
    )


def diff(parsers: Parsers) -> None:
    parser = command(parsers, "diff", "find the first step at which two runs differ", _DIFF)
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("other", metavar="RUN", help="the run to compare it with")
    add_json(parser)
