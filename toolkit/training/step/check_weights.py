"""Checks of the weights: they are finite, and the same on all ranks."""

from __future__ import annotations

from toolkit.distributed.replica_check import compare_weights
from toolkit.errors import RanksDiverged, TrainingDiverged
from toolkit.run.phases import Phase
from toolkit.training.context import TrainContext


def check_weights(context: TrainContext) -> None:
    """Raise TrainingDiverged if trained weights are not finite. Collective.

    If only some ranks have such weights, and the ranks are compared, raise RanksDiverged. Checkpoints with
    such weights are set aside before, so that none is resumed.
    """
    trained = {name: each for name, each in context.state.model.named_parameters() if each.requires_grad}
    is_finite = all(each.isfinite().all() for each in trained.values())
    # A faulty processor spoils those of its own rank only.
    if not context.group.any(not is_finite):
        return
    if context.checkpoints.compared is not None and context.group.any(is_finite):
        compare_ranks(context)
    context.checkpoints.set_spoilt_aside(trained)
    raise TrainingDiverged(
        f"after step {context.state.progress.step} weights are not finite: a gradient was not, as for the "
        "square root of 0, or optimizer.lr is much too large"
    )


def compare_ranks(context: TrainContext) -> None:
    """Compare the ranks' weights. Collective.

    Raises RanksDiverged if they differ; doubtful checkpoints are set aside before.
    """
    context.enter(Phase.COMMUNICATION)
    try:
        compare_weights(context.group, context.state.model, context.state.progress.step)
    except RanksDiverged:
        context.checkpoints.set_uncompared_aside()
        raise
