"""Settings that all tools and the driver share. Imports nothing slow."""

from __future__ import annotations

import os

#: Ranks, all on one host: every tool supports this directly.
RANKS = 2
BATCH_PER_RANK = 16
#: The benchmarks of goodput and resuming set other values.
STEPS = int(os.environ.get("PEERS_STEPS", "1000"))
SAVE_EVERY = int(os.environ.get("PEERS_SAVE_EVERY", "100"))
#: An epoch has at most 200 steps.
SAMPLES = BATCH_PER_RANK * RANKS * min(STEPS, 200)
SEED = 0
#: The driver interrupts the run after this step, half-way between two saves.
STRIKE_AT = 250
#: Seconds before the time limit at which Slurm warns; shorter than in examples, as the limit is short.
WARNING_S = 30

#: Variable with the least milliseconds of a step: the model is small, and sleeps in its forward pass.
STEP_MS_VARIABLE = "PEERS_STEP_MS"


def step_s() -> float:
    """Return the least seconds of a step."""
    return float(os.environ.get(STEP_MS_VARIABLE, "50")) / 1000
