"""Measure the goodput of one tool while a rank is killed at regular intervals, in a separate process.

python under_kills.py ARGUMENTS ANSWER: both JSON; steps and saves by PEERS_STEPS and PEERS_SAVE_EVERY.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from accounts import account
from jobs.settings import STEPS
from tools.by_name import tool_of
from watching import Watched


def measure(
    tool: str, folder: str, step_ms: int, every_s: float, kills: int, limit_s: float, person_s: float
) -> dict[str, Any]:
    """Run the training, and kill a rank every `every_s` seconds after the first step, until it ends.

    kills    the largest number of kills
    limit_s  wall time after the first step
    """
    run = Watched(tool_of(tool), Path(folder), "main", step_ms, person_s)
    run.watch(lambda: run.last_step > 0, time.time() + 120)
    began, struck, missed = time.time(), 0, 0
    limit = began + limit_s
    for number in range(1, kills + 1):
        run.watch(lambda: run.has_finished or run.last_step >= STEPS, min(began + number * every_s, limit))
        if run.has_finished or run.last_step >= STEPS or time.time() >= limit:
            break
        if run.kill_a_rank():
            struck += 1
        else:
            missed += 1
    run.watch(lambda: run.has_finished or run.last_step >= STEPS, limit)
    run.look()
    is_done = run.last_step >= STEPS
    until = next(step.time for step in run.story.steps() if step.step >= STEPS) if is_done else time.time()
    run.watch(lambda: run.has_finished, until + (60 if is_done else 0))
    found = account(run.traces(until))
    run.end()
    return {
        "goodput": 100 * found.goodput,
        "wall": found.wall,
        "unaccounted": found.unaccounted,
        "finished": float(is_done),
        "steps": float(min(run.last_step, STEPS)),
        "kills": float(struck),
        "missed": float(missed),
        "by_hand": float(len(run.by_hand)),
        **found.seconds,
    }


if __name__ == "__main__":
    arguments, answer = sys.argv[1:]
    Path(answer).write_text(json.dumps(measure(**json.loads(arguments))))
