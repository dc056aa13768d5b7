"""The learning rate as a pure function of the step."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable
from functools import lru_cache

from toolkit.config.library_arguments import SCHEDULES
from toolkit.config.schema import LrScheduler
from toolkit.errors import UserError

#: Decimal places to which numbers of steps are rounded: 0.55 * 100 is 55.00000000000001.
_DIGITS = 6


def lr_factor(
    config: LrScheduler, step: int, total_steps: int, steps_per_epoch: int, lr: float = 1.0
) -> float:
    """Factor of the peak learning rate in step number `step`, counted from 0.

    Warm-up of n steps goes 1/n, 2/n, …, 1: the first step already learns and none exceeds the peak.

    lr  the peak learning rate: some schedules of transformers end at a fixed one

    Raises UserError if transformers refuses the arguments of its schedule.
    """
    warmup = config.warmup_steps(total_steps)
    if step < warmup:
        return (step + 1) / warmup
    if config.kind in ("constant", "constant_with_warmup"):
        return 1.0
    if config.kind == "step" and config.step_at is not None:
        return config.gamma ** sum(step >= round(share * total_steps, _DIGITS) for share in config.step_at)
    if config.kind == "step":
        return config.gamma ** _whole_periods(step - warmup, config.step_epochs * steps_per_epoch)
    if config.kind in SCHEDULES:
        return _transformers_factor(config.kind, json.dumps(config.arguments), warmup, total_steps, lr)(step)
    done = (step - warmup) / max(1, total_steps - warmup)
    shape = 1.0 - done if config.kind == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))
    return config.final_factor + (1.0 - config.final_factor) * shape


def _whole_periods(steps: int, period: float) -> int:
    """How many periods, each a number of steps, have ended."""
    nearest = round(steps / period)
    ends_now = round(nearest * period - steps, _DIGITS) == 0
    return nearest if ends_now else int(steps / period)


@lru_cache(maxsize=8)
def _transformers_factor(
    kind: str, arguments: str, warmup: int, total_steps: int, lr: float
) -> Callable[[int], float]:
    """The factor of a step by a schedule of transformers, which is a pure function of the step."""
    # Imported only for runs with such a schedule: this takes seconds.
    import torch
    from transformers import optimization

    sgd = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    make = getattr(optimization, SCHEDULES[kind].name)
    sizes = {"num_warmup_steps": warmup, "num_training_steps": total_steps}
    known = inspect.signature(make).parameters
    try:
        made = make(
            sgd, **{name: size for name, size in sizes.items() if name in known}, **json.loads(arguments)
        )
    except (TypeError, ValueError) as error:
        raise UserError(f"transformers' schedule {kind} refuses its arguments: {error}") from None
    (factor,) = made.lr_lambdas
    return lambda step: float(factor(step))
