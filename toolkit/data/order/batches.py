"""The batches of an experiment: by number of samples, or by number of tokens."""

from __future__ import annotations

from typing import Any

from toolkit.config.schema import Evaluation, Train
from toolkit.data.order.sample_order import EpochPlan, plan_epoch, plan_evaluation, steps_per_epoch
from toolkit.data.order.token_budget import Lengths, plan_evaluation_tokens, plan_tokens, steps_of_tokens


def epoch_steps(train: Train, lengths: Lengths) -> int:
    """Number of steps of every epoch over samples of these lengths [n].

    Raises DataError if one of them is longer than train.batch_max_length.
    """
    if train.batch_max_length is not None:
        return steps_of_tokens(lengths, train.batch_max_length, train.bucket_span)
    assert train.batch_size is not None
    return steps_per_epoch(len(lengths), train.batch_size)


def epoch_plan(train: Train, lengths: Lengths, *, seed: int, epoch: int, fingerprint: str) -> EpochPlan:
    """Plan an epoch, counted from 0, of training on samples of these lengths [n].

    Raises DataError if one of them is longer than train.batch_max_length.
    """
    key: dict[str, Any] = {"seed": seed, "epoch": epoch, "fingerprint": fingerprint}
    key["micro_batches"] = train.micro_batches
    if train.batch_max_length is not None:
        return plan_tokens(lengths, budget=train.batch_max_length, span=train.bucket_span, **key)
    assert train.batch_size is not None
    assert train.bucket_batches is not None
    return plan_epoch(lengths, batch_size=train.batch_size, pool_batches=train.bucket_batches, **key)


def evaluation_plan(evaluation: Evaluation, lengths: Lengths) -> EpochPlan:
    """Plan an evaluation of samples of these lengths [n], each exactly once."""
    if evaluation.batch_max_length is not None:
        return plan_evaluation_tokens(lengths, evaluation.batch_max_length)
    assert evaluation.batch_size is not None
    return plan_evaluation(lengths, evaluation.batch_size)
