"""The cost of a tool per step, and in memory, over a loop written by hand.

The model is so small that the cost of the tool is visible: a step has 8 samples of 16 tokens, one thread, on
the CPU. `stk run` includes everything: control vector, step records, metrics, TensorBoard, heartbeats, saves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.figures.tables import Table
from benchmarks.measuring.rounds import Case, Size, call, in_turns
from benchmarks.stepping import stranger
from benchmarks.stepping.start import ours, peer
from benchmarks.stepping.work import Work, make, write_tokenizer

BASELINE = "hand-written DDP loop"

_PEERS = (
    (BASELINE, "by_hand", ()),
    ("hand-written, samples from tensors", "bare", ()),
    ("accelerate", "with_accelerate", ("accelerate",)),
    ("Lightning", "with_lightning", ("lightning",)),
    ("HF Trainer", "with_trainer", ("accelerate",)),
)
_TITLES = {"docnn": "DocNN", "bert": "BERT, 2 layers"}


def measure(size: Size, folder: Path, say: Callable[[str], None]) -> list[Table]:
    """Return the tables of time and memory."""
    works = [*_works(size, folder)]
    if size.quick:
        write_tokenizer(str(folder / "bert"))
    else:
        call("benchmarks.stepping.work:write_bert", folder=str(folder / "bert"))
    call("benchmarks.stepping.cost:prepare", work=works[0].as_json())
    cases = [case for work in works for case in _cases(work, size)]
    found = in_turns(cases, size.rounds, say)
    step = Table(
        title="Cost of the loop, per step",
        goal="at most 0.65 ms over a hand-written loop, the control vector included",
        unit="ms",
        better="less",
        baseline=BASELINE,
        digits=3,
    )
    memory = Table(
        title="Memory of the largest process while it trains",
        goal="less than 5 % over a hand-written loop",
        unit="MB",
        better="less",
        baseline=BASELINE,
        digits=0,
    )
    return [step.filled(found, "step_ms"), memory.filled(found, "memory_mb")]


def prepare(work: dict[str, object]) -> None:
    """Make the files, in a separate process."""
    make(Work(**work))  # type: ignore[arg-type]


def _works(size: Size, folder: Path) -> Iterator[Work]:
    steps, window = (60, 20) if size.quick else (3000, 50)
    first = Work(folder=str(folder), model="docnn", processes=1, steps=steps, window=window)
    for model in ("docnn",) if size.quick else ("docnn", "bert"):
        for processes in (1,) if size.quick else (1, 2):
            yield replace(first, model=model, processes=processes)


def _cases(work: Work, size: Size) -> Iterator[Case]:
    title = f"{_TITLES[work.model]}, {work.processes} {'process' if work.processes == 1 else 'processes'}"
    for candidate, module, needs in _PEERS:
        if size.quick and module == "bare":
            continue
        yield Case(work=title, candidate=candidate, measure=partial(peer, module, work), needs=needs)
    yield Case(work=title, candidate="stk run", measure=partial(ours, work, {}))
    if work.model == "docnn":
        theirs = partial(ours, work, {}, stranger.write)
        yield Case(work=title, candidate="stk run, three functions", measure=theirs)
    if not size.quick:
        eight = partial(ours, work, {"logical_ranks": 8})
        yield Case(work=title, candidate="stk run, 8 logical ranks", measure=eight)
