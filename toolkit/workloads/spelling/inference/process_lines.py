"""Read lines, process blocks of lines with a model, write one line for each."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import TextIO

from toolkit.errors import DataError
from toolkit.files import open_atomic
from toolkit.run.run_dir import RunDir
from toolkit.workloads.spelling.data.texts.text_files import writing
from toolkit.workloads.spelling.data.texts.words import parse_labels_of
from toolkit.workloads.spelling.inference.correcting import Corrector
from toolkit.workloads.spelling.inference.detecting import Detector
from toolkit.workloads.spelling.inference.line_io import Source, blocks, source, until_fault
from toolkit.workloads.spelling.inference.load_run import BATCH_TOKENS, open_run
from toolkit.workloads.spelling.inference.output_formats import (
    OF_LABELS,
    OF_TEXTS,
    REPAIRED,
    Labels,
    parse_detected,
)
from toolkit.workloads.spelling.inference.requests import Job, Request
from toolkit.workloads.spelling.progress_bar import progress_bar
from toolkit.workloads.spelling.tasks.detection import THRESHOLD

#: Corrects texts: all words, or with labels only the words labelled 1.
Correct = Callable[[Sequence[str], Sequence[Labels] | None], list[str]]
#: Returns an output line for each text of a block. Arguments: texts, optional labels, the output format.
Answers = Callable[[Sequence[str], Sequence[Labels] | None, str], list[str]]


def work(run: RunDir, request: Request, output: TextIO) -> None:
    """Do all jobs with one model. Raises UserError, CheckpointError, OSError.

    output  for jobs without an output file
    """
    _check_files(request.jobs)
    answers = _answers(run, request)
    for job in request.jobs:
        with ExitStack() as stack:
            given = stack.enter_context(source(None if job.input is None else Path(job.input)))
            sink = output if job.output is None else stack.enter_context(_file(Path(job.output)))
            # By default, the bar is not shown on the terminal that shows the lines.
            is_shown = not sink.isatty() if request.progress is None else request.progress
            bar = progress_bar(
                Path(given.name).name, given.size, "{task.fields[lines]:,} lines", is_shown=is_shown
            )
            update, done = stack.enter_context(bar), 0
            for texts, labels, size in _labelled(given, job, stack):
                sink.writelines(f"{line}\n" for line in answers(texts, labels, job.form))
                sink.flush()
                done += len(texts)
                update(advance=size, lines=done)


def _check_files(jobs: Sequence[Job]) -> None:
    """Read all input of output files first: an invalid line would lose the whole file. Raises DataError."""
    for job in jobs:
        names = [name for name in (job.input, job.detections) if name is not None]
        # The data of a pipe can be read only once.
        if job.output is None or job.input is None or "-" in names or not all(map(os.path.isfile, names)):
            continue
        with ExitStack() as stack:
            deque(_labelled(stack.enter_context(source(Path(job.input))), job, stack), maxlen=0)


def _answers(run: RunDir, request: Request) -> Answers:
    opened = open_run(
        run, request.device, batch_tokens=request.batch_tokens or BATCH_TOKENS, options=request.options
    )
    detector, corrector = Detector(opened), Corrector(opened)
    correct = corrector.correct if len(request.jobs) == 1 else _once(corrector.correct)
    threshold = THRESHOLD if request.threshold is None else request.threshold

    def answer(texts: Sequence[str], labels: Sequence[Labels] | None, form: str) -> list[str]:
        if form in OF_LABELS:
            found = detector.detect(texts, threshold)
            return [OF_LABELS[form](*each) for each in zip(texts, found, strict=True)]
        made = corrector.repair(texts) if form == REPAIRED else correct(texts, labels)
        return [OF_TEXTS[form](*each) for each in zip(texts, made, strict=True)]

    return answer


def _once(correct: Correct) -> Correct:
    """Correct equal blocks of texts once, because benchmarks of several kinds may share texts."""
    known = cache(lambda texts: correct([*texts], None))
    return lambda texts, labels: known(tuple(texts)) if labels is None else correct(texts, labels)


def _labelled(
    given: Source, job: Job, stack: ExitStack
) -> Iterator[tuple[list[str], list[list[int]] | None, int]]:
    """Yield blocks of texts, with their labels, or None, and their size in bytes.

    Raises DataError at the first invalid line, after the lines before it.
    """
    others: Iterator[str] | None = None
    if job.detections is not None:
        path = None if job.detections == "-" else Path(job.detections)
        labels_of = stack.enter_context(source(path))
        others = (line for lines, _ in blocks(labels_of) for line in lines)

    def parsed(line: str, number: int) -> tuple[str, list[int]]:
        if others is None:
            return parse_detected(line, f"{given.name}:{number}")
        if (row := next(others, None)) is None:
            raise DataError(
                f"{labels_of.name}: found {number - 1:,} lines, expected one for each of {given.name}, "
                "which has more"
            )
        return line, parse_labels_of(line, row, f"{labels_of.name}:{number}")

    first = 1
    for lines, size in blocks(given):
        if others is None and not job.detected:
            yield lines, None, size
            continue
        for pairs in until_fault(map(parsed, lines, count(first))):
            yield [text for text, _ in pairs], [label for _, label in pairs], size
        first += len(lines)
    if others is not None and next(others, None) is not None:
        raise DataError(
            f"{labels_of.name}: found more lines than {given.name} has, expected one for each of them"
        )


@contextmanager
def _file(path: Path) -> Iterator[TextIO]:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_atomic(path) as stream:
            yield stream
