"""After a stop, record the reason and continue the run.

A preempted job is requeued under its own id, because Slurm may requeue it itself. Before its time limit a job
submits a new one, which starts a second after it instead of two minutes. If one way is refused, the other is
tried. All functions here may be called twice. toolkit.reliability.restart_policy decides whether a run may
start again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from slurm.client import hostlist, programs
from slurm.client.stop_reason import (
    CANCELLED,
    HOST_LOST,
    PREEMPTED,
    REQUESTED,
    SAVED,
    TIME_LIMIT,
    WARNING,
    StopEvidence,
    classify_stop,
    is_array_task,
    is_back,
    job_target,
    restarts_before,
)
from slurm.job.stop_signals import JobStop
from slurm.status.submissions import last_resources, record_script
from slurm.submission.batch.job_options import signal_lead_s
from slurm.submission.submit_job import chain, excludable, names_of_slurm
from toolkit.config import load_resolved
from toolkit.errors import SchedulerError, SlurmRefused, StkError
from toolkit.reliability import restart_policy
from toolkit.reliability.notifications.notify import notify
from toolkit.run.attempts.records import explain_last, read_attempts
from toolkit.run.events import note_event, read_events
from toolkit.run.run_dir import RunDir

#: Seconds for which a rank repeats a request if no controller answers; its job waits meanwhile.
PATIENCE_S = 30.0
#: The same for a query that only refines the reason; short, because the job may be killed meanwhile.
_REASON_TIMEOUT_S = 3.0

#: Events that show that a stop has been handled.
SETTLED = frozenset({"requeue", "chained", "cancelled", "not_requeued"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The job of this process.

    id         the id for `scontrol`
    restart    how often it was requeued before this attempt
    environ    environment at the start of this process: the next job must not get variables of libraries
    """

    id: str
    restart: int
    environ: Mapping[str, str]

    @classmethod
    def around(cls, environ: Mapping[str, str]) -> Job:
        return cls(id=job_target(environ), restart=restarts_before(environ), environ=environ)

    def facts(self, patience_s: float) -> dict[str, str]:
        """Return the controller's record of the job. Raises SchedulerError."""
        return programs.patiently(lambda: programs.show_job(self.id, timeout_s=10), patience_s)


def requeue_or_chain(
    run: RunDir, environ: Mapping[str, str], stop: JobStop, patience_s: float = PATIENCE_S
) -> None:
    """After the save: get the reason of the stop from Slurm, record it, and continue the run if it should.

    Called on rank 0 only. Raises SchedulerError if that fails; `slurm.job.decide_restart` tries again.
    """
    job = Job.around(environ)
    seen = _seen(run, stop, job)
    note_event(
        run, "signal", job_id=job.id, reason=seen.reason, requested=seen.requested, signals=stop.signals
    )
    try:
        facts = job.facts(patience_s)
        why = why_of(job, facts, seen)
        explain_last(run, why, signals=stop.signals)
        continue_run(run, job, facts, why, patience_s)
    except StkError as error:
        note_event(run, "requeue_failed", job_id=job.id, reason=str(error))
        raise


def _seen(run: RunDir, stop: JobStop, job: Job) -> StopEvidence:
    # A user's program also gets the warning, and may exit before this process has a reason to stop.
    was_warned = any(name == WARNING for name, _ in stop.signals)
    has_left = [each.why for each in read_attempts(run)][-1:] == [SAVED]
    reason = stop.reason_to_stop() or (WARNING if was_warned else SAVED if has_left else None)
    return StopEvidence(
        reason=reason,
        restart=job.restart,
        signal_s=signal_lead_s(last_resources(run)),
        requested=stop.watch is not None and stop.watch.is_requested,
        asked_s=_asked_s(stop.signals, reason),
    )


def _asked_s(signals: Sequence[Sequence[Any]], reason: str | None) -> float | None:
    """Seconds from the first request to stop to the last; a warning is one if it is the reason.

    None without a request.
    """
    others = ("SIGCONT",) if reason == WARNING else ("SIGCONT", WARNING)
    times = [time for name, time in signals if name not in others]
    return max(times) - min(times) if times else None


def why_of(job: Job, facts: Mapping[str, str], seen: StopEvidence) -> str:
    """Return why the job was stopped: preempted, time_limit, requested, saved, cancelled or host_lost."""
    why = classify_stop(facts, seen, time.time())
    if why != REQUESTED or seen.requested or not is_back(facts, job.restart):
        return why
    return HOST_LOST if _lost_a_host(job) else PREEMPTED if _was_preempted(facts, seen) else why


def _lost_a_host(job: Job) -> bool:
    """Whether a host of the job is down or does not respond: probably Slurm requeued it for that."""
    hosts = hostlist.of_job(job.environ)
    try:
        return bool(hosts) and programs.is_any_down(hosts, _REASON_TIMEOUT_S)
    except SchedulerError:
        return False


def _was_preempted(facts: Mapping[str, str], seen: StopEvidence) -> bool:
    """Whether a job that is back was probably preempted, although Slurm does not show that any more.

    Without a grace period Slurm never shows it at this point (measured, 22.05). With one, the processes get a
    signal at its start and another at its end. If a person requeues the job, they get one signal.
    """
    names = facts.get("Partition", "").split(",")
    try:
        partitions = programs.patiently(lambda: programs.partitions(_REASON_TIMEOUT_S), _REASON_TIMEOUT_S)
        graces = [each.grace_s for each in partitions if each.name in names and each.can_be_preempted]
        if not graces or seen.asked_s is None or seen.asked_s >= min(graces) / 2:
            return bool(graces)
        # With QOS the grace is the QOS's, which not every cluster lets users read.
        config = programs.patiently(lambda: programs.config(_REASON_TIMEOUT_S), _REASON_TIMEOUT_S)
    except SchedulerError:
        return False
    return config.get("PreemptType") != "preempt/partition_prio"


def continue_run(run: RunDir, job: Job, facts: Mapping[str, str], why: str, patience_s: float) -> None:
    """Continue a run that was stopped, unless it was cancelled. Raises SchedulerError if that fails."""
    if why == CANCELLED:
        note_event(run, "cancelled", job_id=job.id, why=why)
    elif is_back(facts, job.restart):
        _note_requeue(run, job, why, by="slurm")
        notify(run, "requeue", why)
    elif facts.get("BatchFlag") == "0":
        note_event(run, "not_requeued", job_id=job.id, why=why, reason="an interactive job has no queue")
    else:
        decision = restart_policy.after_stop(run, load_resolved(run.config, run.job), why)
        if decision.action == "retry":
            start_again(run, job, why, wants_chain(run, why), patience_s=patience_s)
            notify(run, "requeue", why)
        else:
            note_event(run, "not_requeued", job_id=job.id, why=why, reason=decision.why)
            notify(run, "hold" if decision.action == "hold" else "failure", decision.why)


def wants_chain(run: RunDir, why: str) -> bool:
    """Whether the run continues in a new job, by resources.requeue and the reason of the stop.

    A job that is preempted, or requeued by a person or its command, keeps its id: Slurm may requeue it
    itself, and then there would be two jobs.
    """
    wanted = last_resources(run).requeue
    if why in (PREEMPTED, REQUESTED, SAVED) or wanted == "same_job":
        return False
    return wanted == "chain" or why == TIME_LIMIT


def start_again(
    run: RunDir, job: Job, why: str, chained: bool, *, exclude: Sequence[str] = (), patience_s: float
) -> None:
    """Requeue the job, or submit the next one; if Slurm refuses, try the other way.

    exclude   hosts that the run must not use again. This process may be killed after the requeue, before it
              has told Slurm of them.

    Raises SchedulerError if Slurm refuses both, or no controller answers for patience_s seconds.
    """

    def requeue() -> None:
        hosts = excludable(last_resources(run), names_of_slurm(exclude, job.environ)) if exclude else []
        programs.requeue(job.id, timeout_s=10)
        _note_requeue(run, job, why, by="stk")
        if hosts:
            with suppress(SchedulerError):
                programs.exclude_hosts(job.id, hosts, timeout_s=10)

    def chain_next() -> None:
        if is_array_task(job.environ):
            raise SlurmRefused(f"{job.id} is one task of an array: it keeps its id")
        following = chain(run, job.id, job.environ, exclude)
        note_event(run, "chained", job_id=job.id, next_job_id=following.job_id, why=why, restart=job.restart)

    refusals: list[str] = []
    for way in (chain_next, requeue) if chained else (requeue, chain_next):
        try:
            return programs.patiently(way, patience_s)
        except (SlurmRefused, OSError) as refusal:
            # OSError: the next job needs a file that cannot be written, as on a full disk.
            refusals.append(str(refusal))
    raise SlurmRefused("\n".join(refusals))


def _note_requeue(run: RunDir, job: Job, why: str, *, by: str) -> None:
    note_event(run, "requeue", job_id=job.id, why=why, by=by, restart=job.restart)
    record_script(run, job.environ)


def seen_before(run: RunDir, job: Job) -> StopEvidence:
    """Return the evidence of rank 0, which could not requeue: from its event, else from attempts.jsonl."""
    known = [event.facts for event in read_events(run, "signal")]
    last = known[-1] if known and known[-1].get("job_id") == job.id else {}
    attempts = read_attempts(run)
    return StopEvidence(
        reason=last.get("reason") or (attempts[-1].why if attempts else None),
        restart=job.restart,
        signal_s=signal_lead_s(last_resources(run)),
        requested=bool(last.get("requested")),
        asked_s=_asked_s(last.get("signals") or (), last.get("reason")),
    )


def is_settled(run: RunDir, since: float) -> bool:
    """Whether a stop after the time `since` has been handled."""
    return any(event.time >= since for event in read_events(run, *SETTLED))


def why_continued(run: RunDir, job: Job, since: float) -> str | None:
    """Return why this start of the job was requeued, or submitted the next job, after `since`; else None.

    A requeued job keeps its id, and a controller may begin its numbers again.
    """
    for event in read_events(run, "requeue", "chained"):
        start = (event.facts.get("job_id"), event.facts.get("restart"))
        if event.time >= since and start == (job.id, job.restart):
            return str(event.facts.get("why"))
    return None
