"""The batches of an experiment: by number of samples, or by number of tokens."""

from __future__ import annotations

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
    if train.batch_max_length is not None:
        return plan_tokens(
            lengths,
            budget=train.batch_max_length,
            span=train.bucket_span,
            micro_batches=train.micro_batches,
            seed=seed,
            epoch=epoch,
            fingerprint=fingerprint,
        )
    assert train.batch_size is not None
    assert train.bucket_batches is not None
    return plan_epoch(
        lengths,
        batch_size=train.batch_size,
        micro_batches=train.micro_batches,
        pool_batches=train.bucket_batches,
        seed=seed,
        epoch=epoch,
        fingerprint=fingerprint,
    )


def evaluation_plan(evaluation: Evaluation, lengths: Lengths) -> EpochPlan:
    """Plan an evaluation of samples of these lengths [n], each exactly once."""
    if evaluation.batch_max_length is not None:
        return plan_evaluation_tokens(lengths, evaluation.batch_max_length)
    assert evaluation.batch_size is not None
    return plan_evaluation(lengths, evaluation.batch_size)
