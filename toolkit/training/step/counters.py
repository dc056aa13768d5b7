"""Numbers that a model counts in attributes, such as its passes: no checkpoint has them."""

from __future__ import annotations

import logging

import numpy as np

from toolkit.run.events import note_event
from toolkit.training.context import TrainContext
from toolkit.training.step.dry_run import Numbers, forward, numbers_of, restoring

log = logging.getLogger("toolkit")


def warn_of_counters(context: TrainContext, before: Numbers, samples: np.ndarray) -> None:
    """If numbers of a model have changed, warn of those that every pass changes. Collective.

    before   the numbers when the attempt began
    samples  a batch of this rank
    """
    model = context.state.model
    # All ranks compute: a step of the user may be collective.
    if not context.group.any(before != numbers_of(model)) or not len(samples):
        return
    with restoring(model):
        # The first pass may change numbers once, such as the length of a cache.
        forward(context, samples)
        settled = numbers_of(model)
        forward(context, samples)
        changed = numbers_of(model).items() - settled.items()
    names = sorted(".".join(filter(None, key)) for key, _ in changed)
    if names and context.group.world.is_main:
        problem = (
            f"each forward pass changes {', '.join(names)}, a number in the model. It is not saved, and each "
            "process counts its own passes: weights that depend on it are others on another number of "
            "processes and after a restart. Make it a buffer, and count in a hook of the optimizer "
            "(register_step_post_hook)"
        )
        log.warning("%s", problem)
        note_event(context.run, "model_warning", why=problem)
