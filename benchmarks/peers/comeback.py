"""Measure a tool's time from the notice of a preemption to the first new step, in a separate process.

python comeback.py ARGUMENTS ANSWER: both JSON. The notice is the job's own --signal, which every tool here is
configured to expect: after SIGTERM, Slurm's default, some tools never resume (results/results.md).
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from accounts import Traces
from cluster import job, preempt, user_signal_preemption
from story import Hangs
from tools.by_name import tool_of
from tools.start import Start
from tools.tool import Step
from watching import Watched

#: Parts of the time, in order; no tool can change the part `Slurm`.
PARTS = ("last step", "save and leave", "Slurm", "launch", "imports", "rendezvous", "load", "first new step")


def measure(tool: str, folder: str, step_ms: int, at_step: int, limit_s: float) -> dict[str, float]:
    """Preempt the run after `at_step` steps. Raises Hangs if no new step follows within limit_s."""
    with user_signal_preemption():
        run = Watched(tool_of(tool), Path(folder), "preemptible", step_ms, person_s=5.0)
        try:
            run.watch(lambda: run.last_step >= at_step, time.time() + limit_s)
            preempt(run.story.job_id)
            noticed = _await_notice(run, limit_s)
            run.watch(lambda: _comeback(run) is not None, time.time() + limit_s)
            if (found := _comeback(run)) is None:
                raise Hangs(f"{tool}: no new step {limit_s:g} s after a preemption")
            parts = _parts(noticed, found, run.traces(time.time()))
        finally:
            run.end()
    whole = sum(parts.values()) - parts["Slurm"]
    return {**parts, "whole": whole, "by_hand": float(len(run.by_hand))}


def _await_notice(run: Watched, limit_s: float) -> float:
    """Return when Slurm notified the job; Slurm's own time is only precise to the second.

    A job that ends at once may be queued again between two queries, and then has no PreemptTime.
    """
    looked = time.time()
    deadline = looked + limit_s
    while looked < deadline:
        found = job(run.story.job_id)
        if found.get("PreemptTime", "None") != "None":
            return time.time()
        if found["JobState"] != "RUNNING" or found["Restarts"] != "0":
            return looked
        looked = time.time()
        time.sleep(0.02)
    raise Hangs(f"{run.story.tool.name}: not preempted within {limit_s:g} s")


def _comeback(run: Watched) -> tuple[Step, Step] | None:
    """Return the last step of the first start and the first new step of a later start; None without one."""
    steps = run.story.steps()
    first = [step for step in steps if step.start == steps[0].start]
    best = max(step.step for step in first)
    later = (step for step in steps if step.start != first[0].start and step.step > best)
    return None if (new := next(later, None)) is None else (first[-1], new)


def _parts(noticed: float, found: tuple[Step, Step], traces: Traces) -> dict[str, float]:
    last, new = found
    start: Start = next(each for each in traces.starts if each.name == new.start)
    stopped = max(noticed, last.time)
    launched = max((time for time in traces.launches if time <= start.began), default=start.began)
    gone = min((time for time in traces.gone if stopped < time <= launched), default=launched)
    # A part that a tool does not report counts for the next part.
    begins = [noticed, stopped, gone, launched, start.began]
    for time_ in (start.imported, start.met, start.loaded):
        begins.append(begins[-1] if time_ is None else max(begins[-1], time_))
    ends = [*begins[1:], new.time]
    return {name: end - begin for name, begin, end in zip(PARTS, begins, ends, strict=True)}


if __name__ == "__main__":
    arguments, answer = sys.argv[1:]
    Path(answer).write_text(json.dumps(measure(**json.loads(arguments))))
