"""Numbers that a model counts in attributes, such as its passes: no checkpoint has them."""

from __future__ import annotations

import logging
import math
from itertools import pairwise

from torch import nn

from toolkit.run.events import note_event
from toolkit.training.context import TrainContext

log = logging.getLogger("toolkit")

#: Four equal growths of a number are taken for counting.
_STEPS = 5


class Counters:
    """Watches the numbers of a model during the first steps of an attempt, on rank 0. Changes nothing."""

    def __init__(self, context: TrainContext) -> None:
        self._context = context
        self._seen: list[dict[str, float]] = []

    def look(self) -> None:
        """Call this after each step. After the fifth, warn of numbers that grow by the same amount."""
        if len(self._seen) == _STEPS or not self._context.group.world.is_main:
            return
        self._seen.append(_numbers_of(self._context.state.model))
        if len(self._seen) < _STEPS:
            return
        if counted := sorted(filter(self._grows_evenly, self._seen[0])):
            problem = (
                f"each step changes {', '.join(counted)} in the model. Such numbers are not saved, and each "
                "process counts its own passes: weights that depend on them differ on another number of "
                "processes, and after a restart. Use buffers instead, and change them in a hook of the "
                "optimizer (register_step_post_hook)"
            )
            log.warning("%s", problem)
            note_event(self._context.run, "model_warning", why=problem)

    def _grows_evenly(self, name: str) -> bool:
        values = [seen.get(name, math.nan) for seen in self._seen]
        first, *others = (after - before for before, after in pairwise(values))
        return first != 0 and all(math.isclose(first, other) for other in others)


def _numbers_of(model: nn.Module) -> dict[str, float]:
    """Return the plain numbers in attributes of the modules, by their dotted names."""
    return {
        f"{module}.{name}".lstrip("."): value
        for module, owner in model.named_modules()
        for name, value in vars(owner).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
