"""A drill on the user's own cluster: one job, to which all that an ordinary user can cause happens.

It is slowed to one step a second, so that there is time to strike. Its checkpoints are compared with those
of a second job, to which nothing happens, on the same kind of host.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from slurm import controller
from slurm.drill.preemption import Pair, choose_pair, parse_tiers
from slurm.drill.rows import Digest, Row, digest, events, signals_seen
from slurm.drill.task import STRIDE
from slurm.release import Releaser
from slurm.status.rows import RunStatus, status
from slurm.submissions import last_submission
from slurm.submit import submit
from toolkit.attempts.ledger import read_attempts
from toolkit.config.schema import Experiment, Resources
from toolkit.errors import RunFailed, SchedulerError, SlurmRefused
from toolkit.faults import VARIABLE
from toolkit.rundir import RunDir

#: Slurm counts in minutes and warns up to one early; a slow start must have begun to train before that.
TIME_LIMIT_MIN = 3
_WARNING_S = 30
#: Of the undisturbed job, which must not run into its limit.
_AMPLE = "30"
_PACE = "slow 1 at=data step=0-100000 rank=0"
_GONE = ("failed", "held", "cancelled", "finished")
_POLL_S = 0.5
_ASK_SLURM_S = 5.0
_LEAVE_S = 120.0

#: Called with what is being waited for.
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One interruption: what Slurm is asked to do to a job; without `act` it comes by itself."""

    what: str
    act: Callable[[str], None] | None = None
    is_graceful: bool = True


@dataclass(slots=True)
class _Saved:
    """A row, and the checkpoint that shows whether its bytes are the same."""

    row: Row
    step: int | None = None
    files: Digest = field(default_factory=dict)


class ClusterDrill:
    """A job of the user's, interrupted scene by scene, and one that is left alone."""

    def __init__(self, experiment: Experiment, folder: Path, say: Say) -> None:
        self._experiment = experiment
        self._folder = folder
        self._say = say
        self._runs: list[RunDir] = []
        self._urgent: list[str] = []
        self._asked = 0.0
        self._releaser = Releaser()
        self.not_tried = ["lost hosts and cut networks: only an administrator can cause them"]
        self._pair = self._find_pair()

    def play(self) -> Iterator[list[Row]]:
        """Yield the rows so far whenever there is news of them.

        Whatever happens, no job of the drill outlives it. Raises RunFailed where the run fails by
        itself, SchedulerError where Slurm refuses.
        """
        done: list[_Saved] = []
        try:
            run = self._submit("disturbed", str(TIME_LIMIT_MIN), _PACE)
            before = self._until_training(run, 1)
            for scene in self._scenes():
                self._say(scene.what)
                try:
                    saved, before = self._play(run, scene, before)
                except SlurmRefused as refusal:
                    self.not_tried.append(f"{scene.what}: {' '.join(str(refusal).split())}")
                    continue
                done.append(saved)
                yield [each.row for each in done]
            self._end(run)
            undisturbed = self._undisturbed(sorted({each.step for each in done if each.step is not None}))
            for each in done:
                same = None if each.step is None else each.files == undisturbed.get(each.step)
                each.row = replace(each.row, same_bytes=same)
            yield [each.row for each in done]
        finally:
            self._clean_up()

    # ---- what happens to the job

    def _scenes(self) -> list[Scene]:
        scenes = [
            Scene(what="asked to stop (scancel --signal=TERM)", act=_signal("TERM")),
            Scene(what="requeued (scontrol requeue)", act=controller.requeue),
            # Not SIGKILL, by which scancel ends the whole job; of this one a rank dies on the spot, too.
            Scene(what="all ranks killed (SIGHUP)", act=_signal("HUP"), is_graceful=False),
        ]
        if self._pair is not None:
            scenes.append(Scene(what=f"preempted, GraceTime {self._pair.low.grace_s} s", act=self._preempt))
        return [*scenes, Scene(what=f"out of time ({TIME_LIMIT_MIN} min)")]

    def _find_pair(self) -> Pair | None:
        found = choose_pair(
            parse_tiers(controller.call("scontrol", "--oneliner", "show", "partition")),
            controller.config(),
            self._experiment.resources.partition,
        )
        if isinstance(found, Pair):
            return found
        self.not_tried.append(f"a real preemption: {found}")
        return None

    def _preempt(self, job_id: str) -> None:
        """Submit a job that wants a host of this one, in the partition above.

        The drill's job has its hosts to itself then, so that nobody else's is preempted in its place.
        """
        assert self._pair is not None
        host = read_attempts(self._runs[0])[-1]["hosts"][0]
        script = self._folder / "urgent.sh"
        script.write_text("#!/bin/sh\nexec sleep 3\n")
        where = (f"--partition={self._pair.high.name}", f"--nodelist={host}", "--time=1")
        named = ("--job-name=stk-drill-urgent", f"--output={self._folder}/urgent.log")
        self._urgent.append(controller.sbatch(script, self._folder, options=(*where, *named)))

    def _play(self, run: RunDir, scene: Scene, before: dict[str, Any]) -> tuple[_Saved, dict[str, Any]]:
        """One interruption and the start after it: its row, and that start's line."""
        struck = time.time()
        if scene.act is not None:
            scene.act(_job(run))
        fault = self._until_back(run, before["attempt"] + 1)
        after = self._until_training(run, before["attempt"] + 1)
        before = read_attempts(run)[before["attempt"] - 1]
        left = before.get("time_end")
        if scene.act is None and left is not None:
            struck = left
        lost = max(0, _done(run, before, after["time_start"]) - after["first_step"])
        if scene.is_graceful and lost and not fault:
            fault = f"{lost} steps lost although it was asked"
        row = Row(
            what=scene.what,
            processes=f"{before['world_size']} → {after['world_size']}",
            signals=signals_seen(run, before["time_start"], after["time_start"]),
            left_s=None if left is None or scene.act is None else left - struck,
            lost_steps=lost,
            back_s=after["first_step_s"],
            away_s=after["time_start"] + after["first_step_after_start_s"] - struck,
            fault=fault,
        )
        step = _newest(run, after["first_step"])
        return _Saved(row, step, digest(run.checkpoint(step))), after

    # ---- the jobs

    def _submit(self, name: str, limit: str, faults: str) -> RunDir:
        submitted = submit(
            self._experiment, self._folder / name, "slurm", resources=self._resources(limit, faults)
        )
        if submitted.run not in self._runs:
            self._runs.append(submitted.run)
        return submitted.run

    def _resources(self, limit: str, faults: str) -> Resources:
        own = self._experiment.resources
        partition = self._pair.low.name if self._pair and own.partition is None else own.partition
        return replace(
            own,
            partition=partition,
            exclusive=own.exclusive or self._pair is not None,
            time=limit,
            signal_s=_WARNING_S,
            environment={**own.environment, VARIABLE: faults},
        )

    def _undisturbed(self, steps: Sequence[int]) -> dict[int, Digest]:
        """The checkpoints of these steps of a job that is left alone."""
        found: dict[int, Digest] = {}
        if not steps:
            return found
        # A moment before and after each, so that the save is not left out, and can be read before it goes.
        faults = "; ".join(
            f"slow 3 at=data step={at} rank=0" for step in steps for at in (step - 1, step + 1)
        )
        run = self._submit("undisturbed", self._experiment.resources.time or _AMPLE, faults)
        while len(found) < len(steps):
            for step in run.checkpoint_steps():
                if step in steps and step not in found:
                    found[step] = digest(run.checkpoint(step))
            now = self._look(run, "the undisturbed run")
            if now is not None and now.state == "finished":
                break
            if now is not None and now.state in _GONE:
                raise RunFailed(f"the undisturbed run is {now.state}: {now.reason}")
            time.sleep(_POLL_S)
        self._end(run)
        return found

    def _until_back(self, run: RunDir, attempt: int) -> str:
        """Wait for another start; what was wrong, if the drill had to ask for it."""
        while len(read_attempts(run)) < attempt:
            now = self._look(run, "the next start")
            if now is not None and now.state in _GONE and self._is_gone(run):
                self._submit("disturbed", str(TIME_LIMIT_MIN), _PACE)
                return f"it did not come back by itself ({now.state}: {now.reason})"
            time.sleep(_POLL_S)
        return ""

    def _is_gone(self, run: RunDir) -> bool:
        """Whether a run is still gone at a second look: its next job may have been on its way."""
        time.sleep(_ASK_SLURM_S)
        (now,) = status([run])
        if now.state == "finished":
            raise RunFailed(
                "the drill's run has finished: let it train longer, with train.batch_size or more data"
            )
        return now.state in _GONE

    def _until_training(self, run: RunDir, attempt: int) -> dict[str, Any]:
        """Wait until a start has some steps and a checkpoint behind it; its line. Raises RunFailed."""
        while True:
            lines = read_attempts(run)
            if len(lines) >= attempt and _is_training(run, lines[attempt - 1]):
                return lines[attempt - 1]
            now = self._look(run, "some steps")
            if now is not None and now.state in _GONE:
                raise RunFailed(f"the drill's run is {now.state}: {now.reason}")
            time.sleep(_POLL_S)

    def _look(self, run: RunDir, what: str) -> RunStatus | None:
        """Now and then: where the run stands by Slurm, which need not wait for its two minutes."""
        if time.monotonic() - self._asked < _ASK_SLURM_S:
            return None
        self._asked = time.monotonic()
        (now,) = status([run])
        self._releaser.release(now)
        self._say(
            f"waiting for {what}: job {now.job_id} {now.state}{f', {now.reason}' if now.reason else ''}"
        )
        return now

    def _end(self, run: RunDir) -> None:
        """Cancel what is left of a run, and wait until it has left."""
        last = last_submission(run)
        if last is None:
            return
        controller.cancel(last.job_id)
        deadline = time.monotonic() + _LEAVE_S
        while status([run])[0].is_live and time.monotonic() < deadline:
            time.sleep(_ASK_SLURM_S)

    def _clean_up(self) -> None:
        self._say("cleaning up")
        for job_id in self._urgent:
            with suppress(SchedulerError):
                controller.cancel(job_id)
        for run in self._runs:
            with suppress(SchedulerError):
                if status([run])[0].is_live:
                    self._end(run)


def _signal(name: str) -> Callable[[str], None]:
    return lambda job_id: controller.signal_steps(job_id, name)


def _job(run: RunDir) -> str:
    last = last_submission(run)
    assert last is not None
    return last.job_id


def _is_training(run: RunDir, line: dict[str, Any]) -> bool:
    """Whether a start has done enough to be interrupted: a kill must find a checkpoint of its own."""
    if "first_step_s" not in line:
        return False
    first_step: int = line["first_step"]
    return _done(run, line) >= first_step + STRIDE + 2 and _newest(run, first_step) > first_step


def _done(run: RunDir, line: dict[str, Any], until: float = float("inf")) -> int:
    """How many steps were done when a start ended: by its own word, or by the slow steps' events."""
    noted = events(run, "fault", line["time_start"], until)
    steps: list[int] = [line.get("last_step", 0), *(each["step"] for each in noted)]
    return max(steps)


def _newest(run: RunDir, first_step: int) -> int:
    """The newest checkpoint that the undisturbed run will have too; first_step if there is none."""
    return max((step for step in run.checkpoint_steps() if step % STRIDE == 0), default=first_step)
