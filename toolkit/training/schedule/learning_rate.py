"""The learning rate as a pure function of the step."""

from __future__ import annotations

import math

from toolkit.config.schema import LrScheduler


def lr_factor(config: LrScheduler, step: int, total_steps: int, steps_per_epoch: int) -> float:
    """Factor of the peak learning rate in step number `step`, counted from 0.

    Warm-up of n steps goes 1/n, 2/n, …, 1: the first step already learns and none exceeds the peak.
    """
    warmup = _warmup_steps(config, total_steps)
    if step < warmup:
        return (step + 1) / warmup
    if config.kind == "constant":
        return 1.0
    if config.kind == "step" and config.step_at is not None:
        return config.gamma ** sum(step >= share * total_steps for share in config.step_at)
    if config.kind == "step":
        return config.gamma ** int((step - warmup) / (config.step_epochs * steps_per_epoch))
    done = (step - warmup) / max(1, total_steps - warmup)
    shape = 1.0 - done if config.kind == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))
    return config.final_factor + (1.0 - config.final_factor) * shape


def _warmup_steps(config: LrScheduler, total_steps: int) -> int:
    return round(config.warmup * total_steps) if config.warmup <= 1 else int(config.warmup)
