"""`stk detect` and `stk correct`. They replace this process by a process that imports torch."""

from __future__ import annotations

import argparse
import os
import sys
from argparse import Namespace
from typing import Any, NoReturn

from toolkit.command import Command, Host
from toolkit.config import load_resolved
from toolkit.errors import UserError
from toolkit.run.run_dir import RunDir
from toolkit.workloads.spelling.inference.capabilities import CORRECTORS, DETECTORS, check_use
from toolkit.workloads.spelling.inference.requests import EARLIER_MODULE, MODULE, Job, Request

_DETECT = """\
Read lines from FILE or standard input. For each line, write 0 (right) or 1 (wrong) for each word, or a
single label if the run was trained on whole texts (sed_sequence). Lines may have any length, and are answered
as soon as they arrive.

  stk detect RUN letters.txt > labels.txt
  echo "a stoen bridge" | stk detect RUN --mark
"""
_CORRECT = """\
Read lines from FILE or standard input, and write the corrected lines. A run that was trained to repair white
space only does that. Lines may have any length, and are answered as soon as they arrive.

  stk correct RUN letters.txt --output corrected.txt
  stk correct REPAIR_RUN < texts.txt | stk detect RUN --with-text | stk correct RUN --detected
"""


def _add_detect(parser: argparse.ArgumentParser) -> None:
    _add_common(parser)
    parser.add_argument(
        "--threshold",
        type=float,
        metavar="P",
        help="a word is wrong if the probability of an error is higher (default 0.5)",
    )
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument(
        "--with-text",
        action="store_const",
        dest="form",
        const="with_text",
        help="write the text, a tab and the labels, for `stk correct --detected`",
    )
    forms.add_argument(
        "--mark",
        action="store_const",
        dest="form",
        const="marked",
        help="write the text with wrong words in brackets",
    )


def _add_correct(parser: argparse.ArgumentParser) -> None:
    _add_common(parser)
    parser.add_argument(
        "--search",
        choices=("greedy", "beam", "best_first"),
        help="decoding method (default: that of the run's evaluation)",
    )
    parser.add_argument("--beam-width", type=int, metavar="N", help="number of sequences in a beam")
    marks = parser.add_mutually_exclusive_group()
    marks.add_argument(
        "--detected",
        action="store_true",
        help="lines are those of `stk detect --with-text`; words labelled 0 stay unchanged",
    )
    marks.add_argument(
        "--detections", metavar="FILE", help="file with the labels of the lines; -: standard input"
    )


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run", metavar="RUN", help="a finished run: its folder, its id, or a unique prefix of the id"
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="lines of text (default: standard input)")
    parser.add_argument("--output", metavar="FILE", help="written atomically (default: standard output)")
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="auto (default): a GPU if there is one",
    )
    parser.add_argument("--batch-tokens", type=int, metavar="N", help="tokens in a batch (default 16384)")
    parser.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="show a progress bar on a terminal (default: only if no lines are written to it)",
    )


def detect(arguments: Namespace, host: Host) -> int:
    """Find errors in lines with a trained model."""
    run = _find_run(arguments, host, DETECTORS, "detects no errors")
    if arguments.threshold is not None and not 0 <= arguments.threshold <= 1:
        raise UserError(f"--threshold is {arguments.threshold:g}: it is a probability, from 0 to 1")
    job = Job(input=arguments.file, output=arguments.output, form=arguments.form or "labels")
    _replace_process(run, host, arguments, job, threshold=arguments.threshold)


def correct(arguments: Namespace, host: Host) -> int:
    """Correct lines with a trained model."""
    run = _find_run(arguments, host, CORRECTORS, "corrects no texts")
    if arguments.beam_width is not None and arguments.beam_width < 1:
        raise UserError(f"--beam-width is {arguments.beam_width}: it must be at least 1")
    if arguments.detections == "-" and arguments.file is None:
        raise UserError("--detections - reads standard input: give the lines in a FILE")
    job = Job(
        input=arguments.file,
        output=arguments.output,
        form="text",
        detections=arguments.detections,
        detected=arguments.detected,
    )
    _replace_process(run, host, arguments, job, options=_search_options(arguments, run))


def _search_options(arguments: Namespace, run: RunDir) -> dict[str, object]:
    """Return the options of the search that are given. Raises UserError if they would have no effect."""
    given = {"search": arguments.search, "beam_width": arguments.beam_width}
    options = {name: value for name, value in given.items() if value is not None}
    task = load_resolved(run.config).task
    if options and not hasattr(task, "search"):
        raise UserError(
            f"{run.run_id} repairs white space without a search: leave --search and --beam-width out"
        )
    if "beam_width" in options and options.get("search", task.search) == "greedy":
        raise UserError("--beam-width is for a beam, but the search is greedy: add --search beam")
    return options


def _find_run(arguments: Namespace, host: Host, tasks: tuple[str, ...], otherwise: str) -> RunDir:
    """Return the named run, which must be finished and of one of these tasks. Raises UserError.

    otherwise  why a run of another task cannot be used, as a part of the message
    """
    run = RunDir(host.find_run(arguments.run))
    check_use(run, tasks, otherwise)
    if arguments.batch_tokens is not None and arguments.batch_tokens < 1:
        raise UserError(f"--batch-tokens is {arguments.batch_tokens}: it must be at least 1")
    if arguments.file is not None and not os.path.exists(arguments.file):
        raise UserError(f"there is no file {arguments.file}")
    return run


def _replace_process(run: RunDir, host: Host, arguments: Namespace, job: Job, **given: Any) -> NoReturn:
    """Replace this process by the process that does the work, so that it gets signals and pipes directly.

    given  fields of the request that only one of the two commands has
    """
    device, batch_tokens, progress = arguments.device, arguments.batch_tokens, arguments.progress
    request = Request(jobs=(job,), device=device, batch_tokens=batch_tokens, progress=progress, **given)
    command, environment = host.process(run.path, MODULE, request.to_json(), EARLIER_MODULE)
    sys.stdout.flush()
    os.execve(command[0], command, environment)


DETECT = Command(
    summary="find spelling errors with a trained model",
    description=_DETECT,
    add_arguments=_add_detect,
    run="toolkit.workloads.spelling.commands.use:detect",
    executes_run=True,
)
CORRECT = Command(
    summary="correct texts with a trained model",
    description=_CORRECT,
    add_arguments=_add_correct,
    run="toolkit.workloads.spelling.commands.use:correct",
    executes_run=True,
)
