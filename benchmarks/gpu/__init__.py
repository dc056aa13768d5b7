"""One GPU in ten minutes: every task compared with the CPU, half precision, stops, failures, waits, speed.

The small experiments are those of the tests, so this needs a checkout with the packages of `dev`. Without a
GPU, `--quick` runs everything on the CPU except the parts that need CUDA.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.figures.tables import Table
from benchmarks.measuring.rounds import Case, ChildFailed, Size, call, in_turns

_CPU = "the CPU, fp32"
_NO_GPU = "needs a GPU"
#: The figures of learning, with their titles and goals.
_LEARNING = {
    "loss": ("Loss after ten steps", "within 5 % of the CPU's"),
    "parameters": ("Parameters that a stop changes", "0"),
    "waits": ("Waits for the device in a step", "at most 1, and 1 for each encoder of transformers"),
}
#: Rounds of the speed measurement, limited to keep the ten minutes.
_ROUNDS = 2
_SHORTEST = "text_classification"
#: Claims that are checked once, with the function that checks each.
_PROOFS = {
    "gradients summed by DDP's hook over NCCL, a group of one: 1": "nccl_hook",
    "memory that runs out has its class of failure: 1": "out_of_memory",
    "two ranks on one GPU: 0 ran to the end, 2 refused": "two_ranks",
}


def measure(size: Size, folder: Path, say: Callable[[str], None]) -> list[Table]:
    """Return the tables of one GPU."""
    found: dict[str, Any] = call("benchmarks.gpu.learning:device")
    has_gpu = found["device"] == "cuda"
    notes = (f"On {found['name']}; torch {found['torch']}, CUDA {found['cuda']}, NCCL {found['nccl']}.",)
    device = found["device"] if has_gpu or size.quick else ""
    kinds = [_SHORTEST] if size.quick else found["kinds"]
    return [
        *_learning(kinds, device, notes, say),
        _proofs(device, size, notes, say),
        *_speeds(folder, device, size, notes, say),
    ]


def _learning(
    kinds: list[str], device: str, notes: tuple[str, ...], say: Callable[[str], None]
) -> Iterator[Table]:
    """Yield the tables of the tests' experiments; several run at once because nothing is timed."""
    precisions = ("fp32", "bf16") if device == "cpu" else ("fp32", "bf16", "fp16")

    def of_kind(kind: str) -> dict[str, float | str]:
        say(kind)
        try:
            answer: dict[str, float | str] = call(
                "benchmarks.gpu.learning:of_kind", kind=kind, on=device, precisions=precisions
            )
        except ChildFailed as error:
            answer = {"loss: cpu": f"failed: {error}"}
        say(f"{kind}: {answer}")
        return answer

    with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 2)) as pool:
        answers = [*pool.map(of_kind, kinds if device else ())]
    for figure, (title, goal) in _LEARNING.items():
        table = Table(
            title=title, goal=goal, unit=figure, better="less", baseline=_CPU, digits=4, notes=notes
        )
        values = {
            (kind, _CPU if where == "cpu" else f"stk run, {where}"): value
            if isinstance(value, str)
            else [{figure: value}]
            for kind, answer in zip(kinds, answers, strict=False)
            for name, value in answer.items()
            for of, where in [name.split(": ")]
            if of == figure
        }
        yield table.filled(values or {(kind, "stk run"): _NO_GPU for kind in kinds}, figure)


def _proofs(device: str, size: Size, notes: tuple[str, ...], say: Callable[[str], None]) -> Table:
    """Return a table of the single proofs."""
    cases = [_case(work, f"proofs:{function}", device == "cuda") for work, function in _PROOFS.items()]
    copy = partial(_case, "a checkpoint's copy of BERT-base, s", "speed:checkpoint_copy", bool(device))
    cases.append(copy(on=device, quick=size.quick))
    found = in_turns([case for case in cases if _NO_GPU not in case.needs], 1, say)
    absent = {(case.work, case.candidate): _NO_GPU for case in cases if _NO_GPU in case.needs}
    table = Table(
        title="Proofs", goal="as said", unit="", better="less", baseline=_CPU, digits=4, notes=notes
    )
    return table.filled({**found, **absent}, "value")


def _case(work: str, function: str, possible: bool, **arguments: Any) -> Case:
    """Return a case that is measured in a separate interpreter; if not `possible`, it needs a GPU."""
    measure = partial(call, f"benchmarks.gpu.{function}", **arguments) if possible else dict
    return Case(work=work, candidate="stk run", measure=measure, needs=() if possible else (_NO_GPU,))


def _speeds(
    folder: Path, device: str, size: Size, notes: tuple[str, ...], say: Callable[[str], None]
) -> list[Table]:
    """Return the tables of BERT-base in bf16, trained by whole runs, one after the other."""
    from benchmarks.gpu import speed

    work = speed.work_of(folder, device or "cpu", quick=size.quick or not device)
    facts = call("benchmarks.gpu.speed:prepare", work=work.as_json(), quick=size.quick or not device)
    cases = [*speed.cases(work, facts)]
    found = (
        in_turns(cases, min(size.rounds, _ROUNDS), say)
        if device
        else {(c.work, c.candidate): _NO_GPU for c in cases}
    )
    tables = []
    for figure, title, goal, digits in (
        ("tokens", "BERT-base in bf16: tokens a second", "more than HF Trainer", 0),
        ("share", "BERT-base in bf16: share of the peak, %", "50", 1),
    ):
        table = Table(
            title=title, goal=goal, unit="", better="more", baseline=speed.TRAINER, digits=digits, notes=notes
        )
        tables.append(table.filled(found, figure))
    return tables
