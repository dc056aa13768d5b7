"""Numbers that a model counts in attributes, such as its passes: no checkpoint has them."""

from __future__ import annotations

import logging
import math

from torch import nn

from toolkit.run.events import note_event
from toolkit.training.context import TrainContext

log = logging.getLogger("toolkit")

#: Two equal growths of a number are taken for counting.
_STEPS = 3


class Counters:
    """Watches the numbers of a model during the first steps of an attempt, on rank 0. Changes nothing."""

    def __init__(self, context: TrainContext) -> None:
        self._context = context
        self._seen: list[dict[str, float]] = []

    def look(self) -> None:
        """Call this after each step. After the third, warn of numbers that grow by the same amount."""
        if len(self._seen) == _STEPS or not self._context.group.world.is_main:
            return
        self._seen.append(_numbers_of(self._context.state.model))
        if len(self._seen) < _STEPS:
            return
        first, second, third = self._seen
        growths = {
            name: (second[name] - value, third[name] - second[name])
            for name, value in first.items()
            if name in second and name in third
        }
        counted = sorted(name for name, (one, two) in growths.items() if one and math.isclose(one, two))
        if counted:
            problem = (
                f"each step changes {', '.join(counted)} in the model. Such numbers are not saved, and each "
                "process counts its own passes: weights that depend on them differ on another number of "
                "processes, and after a restart. Use buffers instead, and change them in a hook of the "
                "optimizer (register_step_post_hook)"
            )
            log.warning("%s", problem)
            note_event(self._context.run, "model_warning", why=problem)


def _numbers_of(model: nn.Module) -> dict[str, float]:
    """Return the plain numbers in attributes of the modules, by their dotted names."""
    return {
        f"{module}.{name}".lstrip("."): value
        for module, owner in model.named_modules()
        for name, value in vars(owner).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
