"""The faults that interrupt a run, and their settings of the cluster."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from cluster import command, preempt, user_signal_preemption
from jobs.settings import SAVE_EVERY, STRIKE_AT
from story import Hangs, Story


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An event that interrupts a run.

    strike   interrupts the run after STRIKE_AT steps; None if nothing is done to the run
    around   a setting of the cluster during the run
    """

    name: str
    title: str
    strike: Callable[[Story], None] | None = None
    partition: str = "main"
    minutes: int = 30
    step_ms: int = 50
    around: Callable[[], AbstractContextManager[None]] = nullcontext


def _preempt(story: Story) -> None:
    story.wait_for_step(STRIKE_AT)
    story.strikes_now()
    preempt(story.job_id)


def _kill_one_rank(story: Story) -> None:
    story.wait_for_step(STRIKE_AT)
    story.strikes_now()
    os.kill(story.ranks()[1], signal.SIGKILL)


def _cancel(story: Story) -> None:
    story.wait_for_step(STRIKE_AT)
    story.strikes_now()
    command("scancel", story.job_id)


def _damage_the_newest_checkpoint(story: Story) -> None:
    """Requeue the job, and flip one bit of one weight after its processes have ended (factor 4 or 1/4).

    For every tool, an eighth into the file are word vectors; the last of four bytes has the exponent.
    """
    story.wait_for_step(STRIKE_AT)
    story.strikes_now()
    command("scontrol", "requeue", story.job_id)
    story.wait_until(lambda: not any(map(is_alive, story.ranks().values())), 60)
    file = story.tool.damageable(story.folder)
    with file.open("r+b") as opened:
        place = file.stat().st_size // 32 * 4 + 3
        opened.seek(place)
        byte = opened.read(1)[0]
        opened.seek(place)
        opened.write(bytes([byte ^ 1]))


def _kill_during_a_save(story: Story) -> None:
    """Kill every rank as soon as a new name is in the folder of checkpoints."""
    target = (STRIKE_AT // SAVE_EVERY + 1) * SAVE_EVERY
    story.wait_for_step(target - 4)
    folder, ranks = story.tool.checkpoints(story.folder), story.ranks().values()
    before, deadline = _names(folder), time.monotonic() + 60
    while _names(folder) == before:
        if time.monotonic() > deadline:
            raise Hangs(f"{story.tool.name}: nothing new among the checkpoints")
        time.sleep(0.0005)
    for pid in ranks:
        os.kill(pid, signal.SIGKILL)
    story.strikes_now()


def _names(folder: Path) -> set[str]:
    return {entry.name for entry in os.scandir(folder)}


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


FAULTS = (
    Fault(name="none", title="nothing"),
    Fault(name="none_again", title="nothing, a second time"),
    Fault(
        name="preempt_grace",
        title="preempted, GraceTime 10 s (SIGTERM)",
        strike=_preempt,
        partition="preemptible",
    ),
    Fault(
        name="preempt_no_grace",
        title="preempted, GraceTime 0 (SIGTERM, 5 s until SIGKILL)",
        strike=_preempt,
        partition="preemptible0",
    ),
    # The time limit comes by itself; 1000 steps of 220 ms do not fit into it.
    Fault(name="time_limit", title="time limit of 3 minutes, warned 30 s before", minutes=3, step_ms=220),
    Fault(name="kill_rank", title="kill -9 of one rank", strike=_kill_one_rank),
    Fault(name="scancel", title="scancel (it should stay away, and lose nothing)", strike=_cancel),
    Fault(
        name="flip_bit",
        title="requeued by an administrator, one bit of a weight in the newest checkpoint flipped",
        strike=_damage_the_newest_checkpoint,
    ),
    Fault(name="kill_in_save", title="kill -9 of all ranks during a save", strike=_kill_during_a_save),
    Fault(
        name="preempt_user_signal",
        title="preempted, GraceTime 10 s, with preempt_send_user_signal",
        strike=_preempt,
        partition="preemptible",
        around=user_signal_preemption,
    ),
)
