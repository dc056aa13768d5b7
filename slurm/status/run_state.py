"""The state of one run. Its folder takes precedence over Slurm: a batch script can hide a failure.

slurm.client.stop_reason finds out why a job was stopped, for example preempted or cancelled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from slurm.client.queue import JobState
from slurm.client.stop_reason import CANCELLED
from slurm.status import numbers, phrases
from slurm.status.decisions import may_start_again, was_cancelled, why_not_continued
from slurm.status.dependency import waits_for, why_not_begun
from slurm.status.liveness import SILENCE_S, heartbeat, is_launcher_alive, is_training_here, silent_s
from slurm.status.run_files import Folder, wants_gpus
from toolkit.run.attempts.outcome import Outcome
from toolkit.run.attempts.records import AttemptRecord
from toolkit.run.failure.classes import NO_PROGRESS
from toolkit.run.records.failures import FailureRecord
from toolkit.run.run_dir import RunDir
from toolkit.system.host import is_here
from toolkit.system.output.amounts import duration
from toolkit.system.output.sanitize import number

#: States with a pending or running job.
LIVE = ("pending", "running", "requeued", "held")

#: Beginning of the reason if Slurm does not answer; the job may be pending or running.
CANNOT_ASK = "Slurm cannot be asked about the job"

#: Seconds without a heartbeat after which the table shows how long the start has taken.
_LONG_START_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """The state of a run.

    state    one of the eight states of --json
    doing    the state in plain words
    reason   why; Slurm's own word if that is enough
    """

    state: str
    doing: str
    reason: str = ""
    is_live: bool = False


def run_state(folder: Folder, job: JobState | None, now: float) -> RunState:
    """Return the state of a run. job: Slurm's answer about its newest job; None without a query."""
    found = _state_of(folder, job, now)
    if folder.submission is None or not folder.submission.awaits or found.reason.startswith(CANNOT_ASK):
        return found
    # It was submitted to follow another run.
    run = folder.run
    if found.state == "pending" and "NeverSatisfied" not in found.reason and (waits := waits_for(run)):
        return replace(found, doing="waiting for another run", reason=waits)
    if found.state in ("failed", "cancelled", "unknown") and (why := why_not_begun(run)):
        return replace(found, state="cancelled", doing="not begun", reason=why)
    return found


def _state_of(folder: Folder, job: JobState | None, now: float) -> RunState:
    if folder.has_result:
        return RunState(state="finished", doing="finished")
    if folder.has_lock and is_training_here(folder.run):
        if job is None or job.state == "running":
            return _running(folder, job, now)
        # Slurm may have given up this host, although its processes still train: the job waits again.
        return _running(folder, None, now, _why(job) if job.state in LIVE else "")
    submission = folder.submission
    if submission is not None and submission.cluster == "slurm":
        if job is not None and job.state in LIVE:
            return _of_job(folder, job, now)
        if job is not None and job.state == "cancelled":
            return _seen_elsewhere(folder, job, now) or _of_job(folder, job, now)
    elif submission is not None and is_launcher_alive(folder.run, submission):
        last = folder.last_attempt
        # The launcher removes the failure before it starts again.
        if last and (folder.failure or not last.concluded) and (last.time_start or 0.0) > submission.time:
            return RunState(state="running", doing="ending", is_live=True)
        return RunState(state="pending", doing="starting", reason="the processes are starting", is_live=True)
    return _seen_elsewhere(folder, job, now) or _ended(folder, job)


# -- a job that waits or runs ---------------------------------------------------------------------


def _of_job(folder: Folder, job: JobState, now: float) -> RunState:
    reason = _why(job)
    if job.state == "running":
        return _running(folder, job, now, reason)
    if job.state == "cancelled":
        # The controller still shows the reason why the job was pending.
        shown = reason if reason.startswith(("cancelled", "Dependency")) else ""
        return RunState(state="cancelled", doing=phrases.cancelled(job.reason), reason=shown)
    if job.state == "held":
        doing = f"held ({job.reason})" if job.reason else "held"
    elif job.slurm_state in ("CONFIGURING", "POWER_UP_NODE"):
        doing = "its hosts are starting"
    elif job.slurm_state == "PENDING":
        hosts = "GPUs" if wants_gpus(folder.run) else "hosts"
        doing = phrases.waits_for(job, hosts=hosts, now=datetime.fromtimestamp(now))
    else:
        # A job that was submitted after the last query has no state of Slurm.
        doing = "going back into the queue" if job.slurm_state else "in the queue"
    return RunState(state=job.state, doing=doing, reason=reason, is_live=True)


def _why(job: JobState) -> str:
    """Return Slurm's reason, with advice if waiting does not help."""
    if job.reason in job.advice:
        return job.advice or job.reason
    return f"{job.reason}: {job.advice}" if job.advice else job.reason


def _running(folder: Folder, job: JobState | None, now: float, reason: str = "") -> RunState:
    return RunState(state="running", doing=_doing(folder, job, now), reason=reason, is_live=True)


def _doing(folder: Folder, job: JobState | None, now: float) -> str:
    """Return the activity of a run with hosts, from Slurm's state, its attempts and its heartbeat."""
    if job is not None and job.slurm_state in phrases.RUNNING:
        return phrases.RUNNING[job.slurm_state]
    attempt = folder.last_attempt
    if attempt is None or not is_of(attempt, job):
        return "starting"
    if attempt.time_end is not None:
        # After an attempt that failed and was explained, its job starts the next one or ends.
        return _starting(now - attempt.time_end) if attempt.concluded else "ending"
    begun, stepped = attempt.time_start or now, number(folder.progress.get("time")) or 0.0
    sign = heartbeat(folder.run, attempt)
    if stepped > max(begun, number(sign.get("time")) or 0.0) and now - stepped < SILENCE_S:
        # The last step is newer than the heartbeat, which may be 15 s old and show another phase.
        return phrases.phase("")
    if not sign:
        return _starting(now - begun)
    if (silence_s := silent_s(sign)) > SILENCE_S:
        return f"silent for {duration(silence_s)}: maybe hung"
    still_s, limit_s = number(sign.get("still_s")), number(sign.get("limit_s"))
    if still_s and limit_s and still_s > limit_s / 2:
        return f"standing still for {duration(still_s)}"
    return phrases.phase(str(sign.get("phase")))


def _starting(seconds: float) -> str:
    return f"starting for {duration(seconds)}" if seconds > _LONG_START_S else "starting"


def is_of(attempt: AttemptRecord, job: JobState | None) -> bool:
    """Whether an attempt belongs to the current start of the job, not to an earlier one."""
    if job is None or not job.raw_id or not attempt.job_id:
        return True
    return (attempt.job_id, attempt.restart) == (job.raw_id, job.restarts)


def _seen_elsewhere(folder: Folder, job: JobState | None, now: float) -> RunState | None:
    """Return `running` for a recent heartbeat from another host; None without one.

    An attempt outside of Slurm that was killed on another host counts as running until its heartbeat is old.
    """
    attempt = folder.last_attempt
    if attempt is None or attempt.time_end is not None:
        return None
    if job is not None and job.is_terminal and attempt.job_id == job.raw_id:
        return None
    sign = heartbeat(folder.run, attempt)
    # On this host, the lock is more reliable than a heartbeat that is some seconds old.
    if not sign or is_here(sign.get("host"), sign.get("boot")):
        return None
    if abs(silent_s(sign)) > SILENCE_S:
        return None
    known = f"{job.reason}; " if job is not None and job.reason else ""
    reason = f"{known}its rank 0 on {sign.get('host')} gives signs of life"
    return RunState(state="running", doing=_doing(folder, None, now), reason=reason, is_live=True)


# -- a run that waits no more ---------------------------------------------------------------------


def _ended(folder: Folder, job: JobState | None) -> RunState:
    cannot_ask = job is not None and job.reason.startswith(CANNOT_ASK)
    if folder.has_intent and not cannot_ask:
        reason = "it was being submitted, and its job is not known; stk submit looks for it"
        return RunState(state="unknown", doing="being submitted", reason=reason)
    begun = not _ended_unbegun(folder, job)
    if folder.failure and begun and not (cannot_ask and (folder.has_intent or may_start_again(folder.run))):
        return _of_failure(folder.failure)
    if job is not None and job.state == "failed":
        job_id = folder.submission.job_id if folder.submission else None
        why = why_not_continued(folder.run, folder.last_attempt, job_id)
        reason = why or job.reason
        if job.slurm_state == "PREEMPTED":
            ended = "Slurm ended its job for another one, for good; stk resume continues the run"
            reason = f"{why}; {ended}" if why else ended
        return RunState(state="failed", doing=phrases.failed_job(job.slurm_state), reason=reason)
    if job is not None and cannot_ask:
        return RunState(state="unknown", doing="unknown", reason=job.reason)
    if (last := folder.last_attempt) is not None and last.time_end is not None and begun:
        return _of_stop(folder, last)
    return _without_evidence(folder, job)


def _ended_unbegun(folder: Folder, job: JobState | None) -> bool:
    """Whether the newest job has ended before its first attempt: the folder tells of earlier jobs only."""
    submission, last, failure = folder.submission, folder.last_attempt, folder.failure
    if submission is None or job is None or job.state not in ("failed", "finished"):
        return False
    if last is not None and last.job_id == job.raw_id:
        return False
    known = numbers.newest(last and last.time_start, last and last.time_end, failure and failure.time)
    return known is not None and known < submission.time


def _of_failure(failure: FailureRecord) -> RunState:
    if failure.error == NO_PROGRESS:
        message, _, _ = failure.message.partition("\n")
        return RunState(state="held", doing="held: makes no progress", reason=message)
    return RunState(state="failed", doing=phrases.failed(failure.error), reason=failure.summary)


def _of_stop(folder: Folder, end: AttemptRecord) -> RunState:
    """Return the state of a run that saved and exited, and was not started again."""
    why = str(end.why)
    if why == Outcome.FINISHED.value:
        gone = f"{folder.run.result} is gone, although the run has finished; stk resume makes it again"
        gone += since(folder.run, end)
        return RunState(state="cancelled", doing="its result is gone", reason=gone)
    if was_cancelled(folder.run, folder.submission, end):
        # A local run knows of the signal alone.
        why = CANCELLED
    after = "" if end.last_step is None else f" after step {end.last_step}"
    stopped = filter(None, [f"{phrases.stopped_by(why)}{after}", why_not_continued(folder.run, end)])
    reason = "; ".join([*stopped, f"stk resume continues it{since(folder.run, end)}"])
    return RunState(state="cancelled", doing=phrases.stopped(why), reason=reason)


def since(run: RunDir, end: AttemptRecord) -> str:
    """Return a text with the step that a stopped run continues from; empty if it is the last, or unknown."""
    newest = max(run.checkpoint_steps(), default=0)
    # A user's program has its own step numbers.
    if end.saved is not None or newest >= (end.last_step or 0):
        return ""
    return f" from step {newest}, its newest checkpoint" if newest else " from step 0: it has no checkpoint"


def _ran_on_this_host(folder: Folder) -> bool:
    """Whether its last processes were on this host, where the lock shows that they have ended."""
    submission = folder.submission
    if submission is not None:
        return submission.cluster == "local" and is_here(submission.host, submission.boot)
    sign = heartbeat(folder.run, folder.last_attempt)
    return bool(sign) and is_here(sign.get("host"), sign.get("boot"))


def _without_evidence(folder: Folder, job: JobState | None) -> RunState:
    submission = folder.submission
    if not folder.attempts and submission is None:
        begins = "no process has trained it yet; if no `stk run` is starting it, stk resume does"
        return RunState(state="unknown", doing="unknown", reason="; ".join(folder.faults) or begins)
    if job is not None and job.state == "finished":
        return RunState(
            state="failed",
            doing=phrases.failed_job("COMPLETED"),
            reason="the job ended without finishing the run; its log may say why",
        )
    if _ran_on_this_host(folder):
        reason = (
            "its processes are gone without an error message (killed? full disk?); stk resume continues it"
        )
        return RunState(state="failed", doing=phrases.failed("killed"), reason=reason)
    if was_cancelled(folder.run, submission, folder.last_attempt):
        # Without accounting, Slurm forgets a job some minutes after its end.
        reason = f"it was cancelled with stk cancel; stk resume {folder.run.run_id} continues it"
        return RunState(state="cancelled", doing=phrases.cancelled(""), reason=reason)
    reason = "neither the scheduler nor the run folder says how it ended; stk resume continues it"
    sign = heartbeat(folder.run, folder.last_attempt)
    if sign and (ahead_s := -silent_s(sign)) > SILENCE_S:
        reason = f"its last sign of life is {duration(ahead_s)} in the future: clocks differ; {reason}"
    return RunState(state="unknown", doing="unknown", reason=reason)
