"""The cost of train.reduction exact, with equal bytes on 1, 2, 4, … processes, beside DDP's all-reduce.

`stk run` trains with both, on several processes of this machine with one thread each. There are as many
logical ranks as processes, so both compute the same micro-batches of 32 samples. The time of a step is from
the run's metrics: the median window of steps.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.data.texts import encoder, tables, tokenizer
from benchmarks.figures.tables import Table
from benchmarks.measuring.rounds import Case, ChildFailed, Process, Size, in_turns
from benchmarks.stepping.start import metrics_of

BASELINE = "stk run, fast: DDP's all-reduce"
#: Share of the texts in the training split.
_TRAINED = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """One training of `steps` steps, with a line of metrics every `window` steps.

    batch  samples of each process in a step
    """

    title: str
    model: dict[str, Any]
    processes: int
    steps: int
    window: int
    batch: int = 32


def measure(size: Size, folder: Path, say: Callable[[str], None]) -> list[Table]:
    """Return the table of step times."""
    model = (tokenizer if size.quick else encoder)(size, folder)
    cases = [
        Case(
            work=f"{work.title}, {work.processes} processes",
            candidate=candidate,
            measure=partial(_step_ms, _experiment(work, model, size, folder, reduction), work.processes),
        )
        for work in _works(model, size)
        for candidate, reduction in ((BASELINE, "fast"), ("stk run, exact", "exact"))
    ]
    table = Table(
        title="A step with the exact reduction",
        goal="at most 1.15 times the step with DDP's all-reduce",
        unit="ms",
        better="less",
        baseline=BASELINE,
        notes=(f"Each process has one thread and 32 samples; this machine has {os.cpu_count()} cores.",),
    )
    return [table.filled(in_turns(cases, size.rounds, say), "step_ms")]


def _works(encoder: Path, size: Size) -> Iterator[_Work]:
    docnn = {"kind": "docnn", "embedding_dim": 100, "kernels": [3, 4], "filters": 100}
    if size.quick:
        yield _Work(title="DocNN", model=docnn, processes=2, steps=10, window=1, batch=8)
        return
    bert = {"kind": "pretrained", "path": str(encoder), "layers": 2}
    for processes in (2, 4):
        yield _Work(title="DocNN", model=docnn, processes=processes, steps=160, window=10)
        yield _Work(title=f"{encoder.name}, 2 layers", model=bert, processes=processes, steps=30, window=2)


def _experiment(work: _Work, encoder: Path, size: Size, folder: Path, reduction: str) -> dict[str, Any]:
    own = folder / f"{work.model['kind']}-{work.processes}"
    own.mkdir(exist_ok=True)
    batch = work.batch * work.processes
    most = round(work.steps * batch / _TRAINED)
    table, *_ = tables(size, own, {"SST-2": most, "Wikipedia leads": most}).values()
    pretrained = {"tokenizer": "pretrained", "tokenizer_path": str(encoder), "max_tokens": 128}
    return {
        "name": "reduction",
        "task": {"kind": "text_classification"},
        "model": work.model,
        "data": {
            "path": str(table),
            "splits": {"train": _TRAINED, "validation": 1 - _TRAINED},
            "prepared_dir": str(own / "prepared"),
            **(pretrained if work.model["kind"] == "pretrained" else {}),
        },
        "train": {
            "epochs": 1,
            "batch_size": batch,
            "logical_ranks": work.processes,
            "reduction": reduction,
            "log_per_epoch": work.steps // work.window,
            "device": "cpu",
        },
        "optimizer": {"kind": "adamw", "lr": 1e-4},
        "evaluation": {"test": False},
    }


def _step_ms(experiment: dict[str, Any], processes: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "experiment.json"
        file.write_text(json.dumps(experiment))
        command = [sys.executable, "-m", "slurm", "run", str(file), "--procs", str(processes)]
        Process(command, {"STK_EXPERIMENT_DIR": f"{name}/experiments"}).finish()
        lines = metrics_of(Path(name) / "experiments")
    if len(lines) < 3:
        raise ChildFailed(f"{len(lines)} windows of steps are too few")
    steps = [
        (later["time"] - earlier["time"]) / (later["step"] - earlier["step"])
        for earlier, later in itertools.pairwise(lines)
    ]
    return {"step_ms": 1000 * statistics.median(steps)}
