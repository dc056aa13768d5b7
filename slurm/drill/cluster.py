"""A drill on the user's cluster: one job, with every interruption that an ordinary user can cause.

The job is slowed to one step a second, so that there is time to interrupt it. Its checkpoints are compared
with those of a second, undisturbed job on the same kind of host.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from slurm.client import programs
from slurm.client.parse import Partition
from slurm.config.resources import Resources
from slurm.drill.rows import Digest, Row, digest, events_between, is_equal, signals_seen
from slurm.drill.task import STRIDE
from slurm.job.release_requeued import Releaser
from slurm.status.rows import RunStatus, status
from slurm.status.submissions import last_submission
from slurm.submission.submit import submit
from toolkit.config.schema import Experiment
from toolkit.errors import RunFailed, SchedulerError, SlurmRefused
from toolkit.reliability.fault_injection import VARIABLE
from toolkit.run.attempts.records import AttemptRecord, read_attempts
from toolkit.run.create_run import run_of
from toolkit.run.run_dir import RunDir
from toolkit.system.output.amounts import counted

#: Slurm counts in minutes and warns up to a minute early; even a slow start must train before the warning.
TIME_LIMIT_MIN = 3
_WARNING_S = 30
#: Time limit in minutes of the undisturbed job, which must not reach it.
_UNDISTURBED_TIME = "30"
_PACE = "slow 1 at=data step=0-100000 rank=0"
_GONE = ("failed", "held", "cancelled", "finished")
_POLL_S = 0.5
_ASK_SLURM_S = 5.0
_LEAVE_S = 120.0

#: A function that shows the current action.
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """One interruption: `act` causes it, given the job's id; without `act` it happens by itself."""

    what: str
    act: Callable[[str], None] | None = None
    is_graceful: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A partition for the job, one of higher priority for the preempting job, and their common hosts."""

    low: Partition
    high: Partition
    hosts: frozenset[str]


@dataclass(slots=True)
class _Saved:
    """A row, and the checkpoint to compare with that of the undisturbed run."""

    row: Row
    step: int | None = None
    files: Digest = field(default_factory=dict)


class ClusterDrill:
    """A job that is interrupted several times, and an undisturbed job."""

    def __init__(self, experiment: Experiment, folder: Path, say: Say) -> None:
        self._experiment = experiment
        self._folder = folder
        self._say = say
        self._runs: list[RunDir] = []
        self._urgent: list[str] = []
        self._asked = 0.0
        self._releaser = Releaser()
        self.not_tried = ["lost hosts and cut networks: only an administrator can cause them"]
        pair = choose_pair(programs.partitions(), programs.config(), experiment.resources.partition)
        self._pair = pair if isinstance(pair, Pair) else None
        if isinstance(pair, str):
            self.not_tried.append(f"a real preemption: {pair}")

    def run(self) -> Generator[list[Row]]:
        """Yield the rows so far after each change.

        All jobs of the drill are cancelled at the end in any case. Raises RunFailed if the run fails
        by itself, SchedulerError if Slurm refuses.
        """
        done: list[_Saved] = []
        try:
            run = self._submit("disturbed", str(TIME_LIMIT_MIN), _PACE)
            before = self._until_training(run, 1)
            for interruption in self._interruptions():
                self._say(interruption.what)
                try:
                    saved, before = self._interrupt(run, interruption, before)
                except SlurmRefused as refusal:
                    self.not_tried.append(f"{interruption.what}: {' '.join(str(refusal).split())}")
                    continue
                done.append(saved)
                yield [each.row for each in done]
            self._end(run)
            undisturbed = self._undisturbed(sorted({each.step for each in done if each.step is not None}))
            for each in done:
                same = None if each.step is None else is_equal(each.files, undisturbed.get(each.step))
                each.row = replace(each.row, same_bytes=same)
            yield [each.row for each in done]
        finally:
            self._clean_up()

    # ---- what happens to the job

    def _interruptions(self) -> list[Interruption]:
        interruptions = [
            Interruption(what="asked to stop (scancel --signal=TERM)", act=_signal("TERM")),
            Interruption(what="requeued (scontrol requeue)", act=programs.requeue),
            # Not SIGKILL, with which scancel ends the whole job; nothing catches SIGALRM.
            Interruption(what="all ranks killed (SIGALRM)", act=_signal("ALRM"), is_graceful=False),
        ]
        if self._pair is not None:
            interruptions.append(
                Interruption(what=f"preempted, GraceTime {self._pair.low.grace_s} s", act=self._preempt)
            )
        return [*interruptions, Interruption(what=f"out of time ({TIME_LIMIT_MIN} min)")]

    def _preempt(self, job_id: str) -> None:
        """Preempt the job: submit a job for one of its hosts in the partition of higher priority.

        The drill's job is exclusive on its hosts, so no job of another user is preempted instead.
        """
        assert self._pair is not None
        host = read_attempts(self._runs[0])[-1].hosts[0]
        script = self._folder / "urgent.sh"
        script.write_text("#!/bin/sh\nexec sleep 3\n")
        where = (f"--partition={self._pair.high.name}", f"--nodelist={host}", "--time=1")
        named = ("--job-name=stk-drill-urgent", f"--output={self._folder}/urgent.log")
        self._urgent.append(programs.sbatch(script, self._folder, options=(*where, *named)))

    def _interrupt(
        self, run: RunDir, interruption: Interruption, before: AttemptRecord
    ) -> tuple[_Saved, AttemptRecord]:
        """Interrupt the run once; return the row, and the record of the attempt that follows."""
        interrupted_at = time.time()
        if interruption.act is not None:
            last = last_submission(run)
            assert last is not None
            interruption.act(last.job_id)
        fault = self._until_back(run, before.attempt + 1)
        after = self._until_training(run, before.attempt + 1)
        before = read_attempts(run)[before.attempt - 1]
        left = before.time_end
        if interruption.act is None and left is not None:
            interrupted_at = left
        first_step = after.first_step or 0
        lost = max(0, _done(run, before, after.began) - first_step)
        if interruption.is_graceful and lost and not fault:
            fault = f"{counted(lost, 'step')} lost although it was asked to save"
        row = Row(
            what=interruption.what,
            processes=f"{before.world_size} → {after.world_size}",
            signals=signals_seen(run, before.began, after.began),
            # On a slow host the time limit may have ended the attempt before.
            left_s=None if left is None or left <= interrupted_at else left - interrupted_at,
            lost_steps=lost,
            back_s=after.first_step_s,
            away_s=after.began + (after.first_step_after_start_s or 0.0) - interrupted_at,
            fault=fault,
        )
        step = _newest(run, first_step)
        return _Saved(row, step, digest(run.checkpoint(step))), after

    # ---- the jobs

    def _submit(self, name: str, limit: str, faults: str) -> RunDir:
        own: Resources = self._experiment.resources
        partition = self._pair.low.name if self._pair and own.partition is None else own.partition
        resources = replace(
            own,
            partition=partition,
            exclusive=own.exclusive or self._pair is not None,
            # With a value such as `user`, the job that is to preempt would share the host.
            sbatch={n: v for n, v in own.sbatch.items() if n != "exclusive" or self._pair is None},
            time=limit,
            signal_s=_WARNING_S,
            environment={**own.environment, VARIABLE: faults},
        )
        experiment = replace(self._experiment, resources=resources)
        submitted = submit(experiment, run_of(experiment, self._folder / name), "slurm")
        if submitted.run not in self._runs:
            self._runs.append(submitted.run)
        return submitted.run

    def _undisturbed(self, steps: Sequence[int]) -> dict[int, Digest]:
        """Train an undisturbed run; return its checkpoints of these steps."""
        found: dict[int, Digest] = {}
        if not steps:
            return found
        # Pauses before and after each step, so that its save is not skipped, and is read before its removal.
        faults = "; ".join(
            f"slow 3 at=data step={at} rank=0" for step in steps for at in (step - 1, step + 1)
        )
        run = self._submit("undisturbed", self._experiment.resources.time or _UNDISTURBED_TIME, faults)
        while len(found) < len(steps):
            for step in run.checkpoint_steps():
                if step in steps and step not in found:
                    found[step] = digest(run.checkpoint(step))
            now = self._query_state(run, "the undisturbed run")
            if now is not None and now.state == "finished":
                break
            if now is not None and now.state in _GONE:
                raise RunFailed(f"the undisturbed run is {now.state}: {now.reason}")
            time.sleep(_POLL_S)
        self._end(run)
        return found

    def _until_back(self, run: RunDir, attempt: int) -> str:
        """Wait for the next attempt; return a fault if the drill had to submit it, else an empty text."""
        while len(read_attempts(run)) < attempt:
            now = self._query_state(run, "the next attempt")
            if now is not None and now.state in _GONE and self._is_gone(run):
                self._submit("disturbed", str(TIME_LIMIT_MIN), _PACE)
                return f"it was not restarted automatically ({now.state}: {now.reason})"
            time.sleep(_POLL_S)
        return ""

    def _is_gone(self, run: RunDir) -> bool:
        """Whether a run has still ended at a second query: its next job may be submitted late."""
        time.sleep(_ASK_SLURM_S)
        (now,) = status([run])
        if now.state == "finished":
            raise RunFailed(
                "the drill's run has finished: let it train longer, with train.batch_size or more data"
            )
        return now.state in _GONE

    def _until_training(self, run: RunDir, attempt: int) -> AttemptRecord:
        """Wait until an attempt has done some steps and saved a checkpoint. Raises RunFailed."""
        while True:
            known = read_attempts(run)
            if len(known) >= attempt and _is_training(run, known[attempt - 1]):
                return known[attempt - 1]
            now = self._query_state(run, "some steps")
            if now is not None and now.state in _GONE:
                raise RunFailed(f"the drill's run is {now.state}: {now.reason}")
            time.sleep(_POLL_S)

    def _query_state(self, run: RunDir, what: str) -> RunStatus | None:
        """Query the run's state if the last query is old enough, else return None; release a requeued job."""
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
        """Cancel the run's job, and wait for its end."""
        last = last_submission(run)
        if last is None:
            return
        programs.cancel(last.job_id)
        deadline = time.monotonic() + _LEAVE_S
        while status([run])[0].is_live and time.monotonic() < deadline:
            time.sleep(_ASK_SLURM_S)

    def _clean_up(self) -> None:
        with suppress(OSError):  # The terminal may be lost.
            self._say("cleaning up")
        for job_id in self._urgent:
            with suppress(SchedulerError):
                programs.cancel(job_id)
        for run in self._runs:
            with suppress(SchedulerError):
                if status([run])[0].is_live:
                    self._end(run)


def _signal(name: str) -> Callable[[str], None]:
    return lambda job_id: programs.signal_steps(job_id, name)


def _is_training(run: RunDir, attempt: AttemptRecord) -> bool:
    """Whether an attempt may be interrupted: it has done some steps and saved a checkpoint."""
    if attempt.first_step_s is None:
        return False
    first_step = attempt.first_step or 0
    return _done(run, attempt) >= first_step + STRIDE + 2 and _newest(run, first_step) > first_step


def _done(run: RunDir, attempt: AttemptRecord, until: float = float("inf")) -> int:
    """Return the last step of an attempt, from its record and from the events of its slowed steps."""
    noted = events_between(run, "fault", attempt.began, until)
    steps: list[int] = [attempt.last_step or 0, *(event.facts["step"] for event in noted)]
    return max(steps)


def _newest(run: RunDir, first_step: int) -> int:
    """Return the newest checkpoint that the undisturbed run will have too; first_step without one."""
    return max((step for step in run.checkpoint_steps() if step % STRIDE == 0), default=first_step)


def choose_pair(partitions: Sequence[Partition], config: Mapping[str, str], wanted: str | None) -> Pair | str:
    """Return partitions in which a job can be preempted, or the reason why that is impossible.

    wanted   the partition that the job must be in; None: any
    """
    if config.get("PreemptType") != "preempt/partition_prio":
        return (
            f"the cluster's PreemptType is {config.get('PreemptType', 'unknown')}, not preempt/partition_prio"
        )
    up = [each for each in partitions if each.state == "UP"]
    if wanted is not None and not any(each.name == wanted for each in up):
        return f"the partition {wanted} is not up"
    pairs = [
        Pair(low=low, high=high, hosts=low.host_names & high.host_names)
        for low in up
        # Only in this mode Slurm requeues a preempted job.
        if wanted in (None, low.name) and low.preempt_mode == "REQUEUE"
        for high in up
        if high.priority_tier > low.priority_tier and low.host_names & high.host_names
    ]
    if not pairs:
        where = f"of the partition {wanted}" if wanted else "of any partition"
        return f"no jobs {where} can be preempted and requeued by those of another one"
    # The user's usual partition first, then the one with the most hosts in common.
    return max(pairs, key=lambda pair: (pair.low.is_default, len(pair.hosts), -pair.high.priority_tier))
