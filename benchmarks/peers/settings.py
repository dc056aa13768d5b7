"""Settings that all tools share, and facts for the driver. Imports nothing slow."""

from __future__ import annotations

import os

#: Ranks, on one host: each tool's plainest way of running several processes.
RANKS = 2
BATCH_PER_RANK = 16
#: The goodput benchmark chooses others.
STEPS = int(os.environ.get("PEERS_STEPS", "1000"))
SAVE_EVERY = int(os.environ.get("PEERS_SAVE_EVERY", "100"))
#: An epoch has 200 steps, or all of fewer.
SAMPLES = BATCH_PER_RANK * RANKS * min(STEPS, 200)
SEED = 0
#: The driver strikes when so many steps are done: half-way between two saves.
STRIKE_AT = 250
#: Seconds before the time limit at which Slurm warns. Examples say 90; here the limit is 2 minutes.
WARNING_S = 30

#: Milliseconds that a step takes at least: the model is small, and sleeps in its forward pass.
STEP_MS_VARIABLE = "PEERS_STEP_MS"


def step_s() -> float:
    """Seconds that a step takes at least."""
    return float(os.environ.get(STEP_MS_VARIABLE, "50")) / 1000
