"""The share of padding in a step, its distribution over 4 ranks, and the cost of planning 10 million samples.

Nothing is trained: only the lengths of the texts and the batches count. Each rank has 32 samples a step on
average; the token budget is equal to the tokens of these. Useful work is real tokens over four times the
computed tokens of the slowest rank of each step.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from benchmarks.data.padding import PROCESSES, Cost, Lengths, cost_of, lengths_of, made_up_lengths, plan_of
from benchmarks.data.texts import tables, tokenizer
from benchmarks.figures.tables import Table
from benchmarks.measuring.rounds import Case, Size, call, in_turns

MAX_TOKENS = 256
_PER_RANK = 32
_OURS, _GROUPED = "token budget, span 4 (ours)", "HF group_by_length"
_REBALANCED = "HF batch_rebalance"

Order = npt.NDArray[np.int64]
#: Samples of each rank in each step.
Steps = Sequence[Sequence[Order]]


def measure(size: Size, folder: Path, say: Callable[[str], None]) -> list[Table]:
    """Return the tables of padding, of useful work, and of planning."""
    return [*_shares(size, folder, say), *_plans(size, folder, say)]


def _shares(size: Size, folder: Path, say: Callable[[str], None]) -> Iterator[Table]:
    model = tokenizer(size, folder)
    cases = [
        case
        for name, path in tables(size, folder).items()
        for case in _cases(name, lengths_of(path, model, MAX_TOKENS))
    ]
    found = in_turns(cases, size.rounds, say)
    padding = Table(
        title="Padding, share of the computed tokens",
        goal="under 3 %",
        unit="%",
        better="less",
        baseline=_GROUPED,
    )
    useful = Table(
        title="Useful work on 4 ranks", goal="at least 95 %", unit="%", better="more", baseline=_GROUPED
    )
    yield padding.filled(found, "padding")
    yield useful.filled(found, "useful")


def _cases(name: str, lengths: Lengths) -> Iterator[Case]:
    # Each round has another seed.
    ways: dict[str, Callable[[Lengths, int], Cost]] = {
        "fixed length": _fixed,
        "longest in the batch": _longest,
        _GROUPED: _grouped,
        _REBALANCED: _rebalanced,
        _OURS: _ours,
    }
    for candidate, way in ways.items():
        yield Case(work=name, candidate=candidate, measure=partial(_percent, way, lengths, itertools.count()))


def _percent(way: Callable[[Lengths, int], Cost], lengths: Lengths, seeds: Iterator[int]) -> dict[str, float]:
    cost = way(lengths, next(seeds))
    assert cost.useful_work is not None
    return {"padding": 100 * cost.padding, "useful": 100 * cost.useful_work}


def _ours(lengths: Lengths, seed: int) -> Cost:
    budget = max(round(PROCESSES * _PER_RANK * float(lengths.mean())), MAX_TOKENS)
    train = {"batch_max_length": budget, "bucket_span": 4}
    return cost_of(plan_of(train, lengths, PROCESSES, seed), lengths)


def _fixed(lengths: Lengths, seed: int) -> Cost:
    return _cost(np.full_like(lengths, lengths.max()), _shuffled(lengths, seed), lengths)


def _longest(lengths: Lengths, seed: int) -> Cost:
    return _cost(lengths, _shuffled(lengths, seed), lengths)


def _shuffled(lengths: Lengths, seed: int) -> Steps:
    return _dealt(np.random.default_rng(seed).permutation(len(lengths)))


def _grouped(lengths: Lengths, seed: int) -> Cost:
    import torch
    from transformers.trainer_pt_utils import get_length_grouped_indices

    generator = torch.Generator().manual_seed(seed)
    order = get_length_grouped_indices(lengths.tolist(), _PER_RANK, generator=generator)
    return _cost(lengths, _dealt(np.array(order)), lengths)


def _rebalanced(lengths: Lengths, seed: int) -> Cost:
    """Return the cost with Trainer's batch_rebalance: 128 samples per step, cut into ranks of equal cost."""
    from transformers.trainer_pt_utils import BatchRebalanceSampler

    ranks = [
        BatchRebalanceSampler(
            lengths.tolist(),
            effective_batch_size=_PER_RANK * PROCESSES,
            dp_size=PROCESSES,
            grad_accum=1,
            seed=seed,
            rank=rank,
            drop_last=False,
        )
        for rank in range(PROCESSES)
    ]
    steps = [[np.array(batch) for batch in step] for step in zip(*ranks, strict=True)]
    return _cost(lengths, steps, lengths)


def _dealt(order: Order) -> Steps:
    """Return the samples of each rank: a batch for each rank in turn, as accelerate does for Trainer.

    The first samples are repeated until all ranks have the same number.
    """
    order = np.resize(order, len(order) + -len(order) % (_PER_RANK * PROCESSES))
    return cast(Steps, order.reshape(-1, PROCESSES, _PER_RANK))


def _cost(widths: Lengths, batches: Steps, lengths: Lengths) -> Cost:
    """Return the cost of the batches, each padded to its largest width."""
    computed = np.array([[len(rank) * int(widths[rank].max()) for rank in step] for step in batches])
    tokens, steps = int(lengths.sum()), computed.sum(axis=1)
    return Cost(
        steps=len(steps),
        padding=1 - tokens / int(steps.sum()),
        useful_work=tokens / (PROCESSES * int(computed.max(axis=1).sum())),
        largest=float(steps.max() / steps.mean()),
    )


def _plans(size: Size, folder: Path, say: Callable[[str], None]) -> Iterator[Table]:
    samples = 20_000 if size.quick else 10_000_000
    file = folder / "lengths.npy"
    np.save(file, made_up_lengths(samples))
    cases = [
        Case(
            work=f"{samples:,} samples",
            candidate=candidate,
            measure=partial(call, "benchmarks.data.padding_shares:plan", way=way, file=str(file)),
        )
        for candidate, way in (
            (_GROUPED, "grouped"),
            (_OURS, "tokens"),
            ("samples, sorted (ours)", "samples"),
        )
    ]
    found = in_turns(cases, min(size.rounds, 3), say)
    seconds = Table(
        title="Planning an epoch, CPU",
        goal="under 5 s for 10 million samples",
        unit="s",
        better="less",
        baseline=_GROUPED,
    )
    memory = Table(
        title="Planning an epoch, memory beside the lengths",
        goal="under 1 GB for 10 million samples",
        unit="MB",
        better="less",
        baseline=_GROUPED,
        digits=0,
    )
    yield seconds.filled(found, "seconds")
    yield memory.filled(found, "memory_mb")


def plan(way: str, file: str) -> dict[str, float]:
    """Plan an epoch over the lengths in a file, in a separate process, because its peak memory counts."""
    work = _PLANS[way]()
    lengths = np.load(file)
    _forget_peak()
    before_mb, started = _peak_mb(), time.process_time()
    work(lengths)
    seconds = time.process_time() - started
    return {"seconds": seconds, "memory_mb": _peak_mb() - before_mb}


def _ours_by(**train: int) -> Callable[[Lengths], object]:
    return lambda lengths: plan_of(train, lengths, 8)


def _group_all() -> Callable[[Lengths], object]:
    from transformers.trainer_pt_utils import get_length_grouped_indices

    return lambda lengths: get_length_grouped_indices(lengths.tolist(), 120)


#: Each function does its imports, and returns the function to measure.
_PLANS: dict[str, Callable[[], Callable[[Lengths], object]]] = {
    "grouped": _group_all,
    "tokens": partial(_ours_by, batch_max_length=12288, bucket_span=4),
    "samples": partial(_ours_by, batch_size=120),
}


def _forget_peak() -> None:
    """Reset the peak memory to the current memory."""
    Path("/proc/self/clear_refs").write_text("5")


def _peak_mb() -> float:
    # Not getrusage: its peak starts with the memory of the parent process.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024 / 1e6
