"""One GPU in ten minutes: every task beside the CPU, half precisions, stops, failures, waits, speed.

The small experiments are those of the tests, so this needs a checkout with the packages of `dev`. Where there
is no GPU, `--quick` goes through all of it on the CPU, but for what only CUDA has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.rounds import Case, Size, call, in_turns
from benchmarks.tables import Table

_CPU = "the CPU, fp32"
_NO_GPU = "needs a GPU"
_SHORTEST = "text_classification"
#: What is proved once, and by what function.
_PROOFS = {
    "gradients summed by DDP's hook over NCCL, a group of one": "nccl_hook",
    "memory that runs out has its class of failure": "out_of_memory",
    "two ranks on one GPU: 0 ran to the end, 1 refused": "two_ranks",
}


def measure(size: Size, folder: Path, say: Callable[[str], None]) -> list[Table]:
    """The tables of one GPU."""
    found: dict[str, Any] = call("benchmarks.gpu.learning:device")
    has_gpu = found["device"] == "cuda"
    notes = (f"On {found['name']}; torch {found['torch']}, CUDA {found['cuda']}, NCCL {found['nccl']}.",)
    device = found["device"] if has_gpu or size.quick else ""
    kinds = [_SHORTEST] if size.quick else found["kinds"]
    table = partial(_table, notes=notes, say=say)
    return [
        table("Loss after ten steps", "within 5 % of the CPU's", "loss", _losses(kinds, device)),
        table("Parameters that a stop changes", "0", "parameters", _stops(kinds, device)),
        table(
            "Waits for the device in a step",
            "at most 1, and 1 for each encoder of transformers",
            "waits",
            _waits(kinds, has_gpu=has_gpu),
        ),
        table("Proofs", "1; of two ranks as said", "", _proofs(has_gpu=has_gpu)),
        table("BERT-base in bf16", "half of the peak", "", _speeds(device, size), rounds=size.rounds),
    ]


def _table(
    title: str,
    goal: str,
    unit: str,
    cases: Iterator[Case],
    *,
    notes: tuple[str, ...],
    say: Callable[[str], None],
    rounds: int = 1,
) -> Table:
    table = Table(title=title, goal=goal, unit=unit, better="less", baseline=_CPU, digits=4, notes=notes)
    every = list(cases)
    found = in_turns([case for case in every if _NO_GPU not in case.needs], rounds, say)
    absent = {(case.work, case.candidate): _NO_GPU for case in every if _NO_GPU in case.needs}
    return table.filled({**found, **absent}, "value")


def _case(work: str, candidate: str, function: str, possible: bool, **arguments: Any) -> Case:
    """A case that is measured in an interpreter of its own, or that a machine without a GPU cannot have."""
    if not possible:
        return Case(work=work, candidate=candidate, measure=dict, needs=(_NO_GPU,))
    return Case(
        work=work, candidate=candidate, measure=partial(call, f"benchmarks.gpu.{function}", **arguments)
    )


def _precisions(device: str) -> tuple[str, ...]:
    return ("fp32", "bf16") if device == "cpu" else ("fp32", "bf16", "fp16")


def _losses(kinds: list[str], device: str) -> Iterator[Case]:
    for kind in kinds:
        of = partial(_case, kind, function="learning:loss", possible=bool(device), kind=kind)
        yield of(candidate=_CPU, on="cpu", precision="fp32")
        for precision in _precisions(device):
            yield of(candidate=f"stk run, {precision}", on=device, precision=precision)


def _stops(kinds: list[str], device: str) -> Iterator[Case]:
    for kind in kinds:
        for precision in _precisions(device):
            yield _case(
                kind, f"stk run, {precision}", "learning:changed_by_a_stop", bool(device),
                kind=kind, on=device, precision=precision,
            )  # fmt: skip


def _waits(kinds: list[str], *, has_gpu: bool) -> Iterator[Case]:
    for kind in kinds:
        yield _case(kind, "stk run", "learning:waits", has_gpu, kind=kind, on="cuda")


def _proofs(*, has_gpu: bool) -> Iterator[Case]:
    for work, function in _PROOFS.items():
        yield _case(work, "stk run", f"proofs:{function}", has_gpu)


def _speeds(device: str, size: Size) -> Iterator[Case]:
    for work in ("tokens a second", "share of the peak, %", "a checkpoint's copy, s"):
        yield _case(work, "stk run", "speed:of_bert", bool(device), on=device, figure=work, quick=size.quick)
