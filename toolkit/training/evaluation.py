"""Evaluation: the ranks share the batches, rank 0 adds the scores; same bytes on any number of ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from toolkit.config import schema
from toolkit.data.order.batches import evaluation_plan
from toolkit.data.ragged import Array, Lists, offsets_of
from toolkit.distributed.process_group import Group
from toolkit.reliability.stop import Stop, StoppedEarly
from toolkit.task import Evaluation, Task, lists_of
from toolkit.training.batch_workers import Request, make_batches

if TYPE_CHECKING:
    # The context brings checkpoints and files, which a check of a task does not need.
    from toolkit.training.context import TrainContext


def evaluate(
    task: Task,
    model: nn.Module,
    split: str,
    group: Group,
    settings: schema.Evaluation,
    precision: torch.dtype | None,
    *,
    on_batch: Callable[[], None] = lambda: None,
    asks_to_stop: Callable[[], bool] | None = None,
    workers: int = 0,
    with_outputs: bool = True,
) -> Evaluation | None:
    """Score a whole split; rank 0 returns the evaluation, other ranks None. Collective.

    The plan of the batches does not depend on the ranks. Each batch is scored by one rank and sent to
    rank 0, which adds the sums in the order of the plan. So the result does not depend on the number of
    ranks, and other ranks hold one batch at a time. Every sample is counted exactly once, which is checked.

    on_batch      called after each batch of this rank
    asks_to_stop  whether this rank is asked to stop; called before each batch. If any rank is, all ranks
                  raise StoppedEarly between the same two batches
    workers       processes of this rank that make batches ahead, as train.workers
    with_outputs  whether rank 0 collects the outputs
    """
    samples = task.splits[split]
    plan = evaluation_plan(settings, samples.lengths)

    def own_batches() -> Iterator[_BatchScores]:
        own = range(group.world.rank, plan.steps, group.world.size)
        requests = (Request(split, (number,), plan.step(number)) for number in own)
        for batch in make_batches(task, requests, group.device, workers):
            scores = _score(task, model, batch, precision, group.device, with_outputs)
            on_batch()
            yield scores

    def leave_if_asked() -> None:
        if asks_to_stop is not None and group.any(asks_to_stop()):
            raise StoppedEarly

    total = _SplitScores(len(samples), len(task.score_sums))
    model.eval()
    try:
        for number, scores in enumerate(_on_rank_0(own_batches(), plan.steps, group, leave_if_asked)):
            total.add(plan.step(number), scores)
    finally:
        model.train()
    return total.evaluation() if group.world.is_main else None


def score_split(
    context: TrainContext, stop: Stop, split: str, *, with_outputs: bool = True
) -> tuple[Evaluation | None, dict[str, float]]:
    """Score a split with the model in training. Collective. Raises StoppedEarly if a rank is asked to stop.

    Returns the evaluation, which only rank 0 has, and the metrics.
    """
    result = evaluate(
        context.task,
        context.state.model,
        split,
        context.group,
        context.experiment.evaluation,
        context.precision,
        on_batch=partial(context.activity.done, "evaluation"),
        asks_to_stop=partial(context.is_asked_to_stop, stop),
        workers=context.experiment.train.workers,
        with_outputs=with_outputs,
    )
    return result, metrics_on_all_ranks(context.task, split, result, context.group)


def metrics_on_all_ranks(
    task: Task, split: str, evaluation: Evaluation | None, group: Group
) -> dict[str, float]:
    """Compute the metrics of a split on rank 0, which has the evaluation, for all ranks. Collective."""
    metrics: dict[str, float] = group.agree(evaluation and task.metrics(split, evaluation))
    return metrics


@dataclass(frozen=True, slots=True)
class _BatchScores:
    """The scores of one batch: sums, shape [len(task.score_sums)], and outputs of its samples."""

    sums: Array
    outputs: Mapping[str, Lists]

    def to_bytes(self) -> bytes:
        arrays = {f"values:{name}": lists.values for name, lists in self.outputs.items()}
        arrays |= {f"offsets:{name}": lists.offsets for name, lists in self.outputs.items()}
        stream = BytesIO()
        # mypy assumes that an array may be passed as allow_pickle.
        np.savez(stream, sums=self.sums, **arrays)  # type: ignore[arg-type]
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> _BatchScores:
        with np.load(BytesIO(content), allow_pickle=False) as arrays:
            names = [name.removeprefix("values:") for name in arrays if name.startswith("values:")]
            outputs = {name: Lists(arrays[f"values:{name}"], arrays[f"offsets:{name}"]) for name in names}
            return cls(arrays["sums"], outputs)


@torch.no_grad()
def _score(
    task: Task,
    model: nn.Module,
    batch: object,
    precision: torch.dtype | None,
    device: torch.device,
    with_outputs: bool,
) -> _BatchScores:
    with torch.autocast(device.type, precision, enabled=precision is not None):
        score = task.score(model, batch)
        # Some tasks compute outputs only when they are read.
        outputs = dict(score.outputs) if with_outputs else {}
    return _BatchScores(score.sums.cpu().numpy(), {name: lists_of(each) for name, each in outputs.items()})


def _on_rank_0(
    own: Iterator[_BatchScores], count: int, group: Group, before_each: Callable[[], None]
) -> Iterator[_BatchScores]:
    """Yield the scores of all batches on rank 0, in the order of the plan; nothing on other ranks.

    before_each  called on every rank before each rank scores its next batch
    """
    for first in range(0, count, group.world.size):
        before_each()
        ranks = range(min(group.world.size, count - first))
        if not group.world.is_main:
            if group.world.rank in ranks:
                group.send_to_main(next(own).to_bytes())
            continue
        for rank in ranks:
            yield _BatchScores.from_bytes(group.receive(rank)) if rank else next(own)


class _SplitScores:
    """The scores of a split, added up batch by batch."""

    def __init__(self, samples: int, sums: int) -> None:
        self._sums = np.zeros(sums)
        self._seen = np.zeros(samples, dtype=np.int64)
        self._outputs: dict[str, list[tuple[Array, Lists]]] = {}

    def add(self, indices: Array, scores: _BatchScores) -> None:
        self._sums += scores.sums
        self._seen[indices] += 1
        for name, lists in scores.outputs.items():
            found = f"{len(lists)} outputs {name!r} for {len(indices)} samples"
            assert len(lists) == len(indices), f"{found}, expected one of each"
            self._outputs.setdefault(name, []).append((indices, lists))

    def evaluation(self) -> Evaluation:
        assert (self._seen == 1).all(), "an evaluation must count every sample exactly once"
        count = len(self._seen)
        return Evaluation(self._sums, {name: _joined(each, count) for name, each in self._outputs.items()})


def _joined(batches: Sequence[tuple[Array, Lists]], samples: int) -> Lists:
    """The lists of all batches in the order of the samples, in a type that holds all their values."""
    # A batch without values, such as one of empty lists, may have any type.
    types = {lists.values.dtype for _, lists in batches if len(lists.values)}
    lengths = np.zeros(samples, dtype=np.int64)
    for indices, lists in batches:
        lengths[indices] = np.diff(lists.offsets)
    offsets = offsets_of(lengths)
    values = np.empty(offsets[-1], np.result_type(*types or {np.dtype(np.int64)}))
    for indices, lists in batches:
        for index, each in zip(indices, lists, strict=True):
            values[offsets[index] : offsets[index + 1]] = each
    return Lists(values, offsets)
