"""The state of one run: its folder's own word first, for a batch script can swallow a failure."""

from __future__ import annotations

import socket
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from slurm.awaited import standing
from slurm.queue import JobState
from slurm.status import words
from slurm.status.alive import SILENCE_S, heartbeat, is_launcher_alive, is_training_here, silent_s
from slurm.status.figures import number
from slurm.status.folder import Folder, last_events, wants_gpus
from toolkit.failure.classes import NO_PROGRESS
from toolkit.rundir import RunDir

#: States in which a job of the run waits or runs.
LIVE = ("pending", "running", "requeued", "held")

#: Begins the reason of a run whose job may wait or run for all that is known.
CANNOT_ASK = "Slurm cannot be asked about the job"

#: A start that has said nothing for this long is told to be long at it.
_LONG_START_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Where a run stands.

    state    one of the eight of --json
    doing    the same in the user's words
    reason   why; Slurm's own word where that says it
    """

    state: str
    doing: str
    reason: str = ""
    is_live: bool = False


def judge(folder: Folder, job: JobState | None, now: float) -> Verdict:
    """The state of a run. job: what Slurm says of its newest job; None where it was not asked."""
    found = _judge(folder, job, now)
    return _behind_another(folder.run, found) if folder.awaits_another else found


def _behind_another(run: RunDir, found: Verdict) -> Verdict:
    """The verdict on a run that was submitted to follow another one, in terms of that one."""
    state, reason = standing(run, found.state, found.reason)
    if (state, reason) == (found.state, found.reason):
        return found
    doing = "waiting for another run" if state == "pending" else "not begun"
    return replace(found, state=state, doing=doing, reason=reason)


def _judge(folder: Folder, job: JobState | None, now: float) -> Verdict:
    if folder.has_result:
        return Verdict(state="finished", doing="finished")
    if folder.has_lock and is_training_here(folder.run):
        return _running(folder, job, now)
    submission = folder.submission
    if submission is not None and submission.cluster == "slurm":
        if job is not None and job.state in (*LIVE, "cancelled"):
            return _of_job(folder, job, now)
    elif submission is not None and is_launcher_alive(submission):
        return Verdict(state="pending", doing="starting", reason="the processes are starting", is_live=True)
    return _seen_elsewhere(folder, job, now) or _ended(folder, job)


# -- a job that waits or runs ---------------------------------------------------------------------


def _of_job(folder: Folder, job: JobState, now: float) -> Verdict:
    reason = _why(job)
    if job.state == "running":
        return _running(folder, job, now, reason)
    if job.state == "cancelled":
        # The controller leaves the reason standing for which the job had waited.
        told = reason if reason.startswith(("cancelled", "Dependency")) else ""
        return Verdict(state="cancelled", doing=words.cancelled(job.reason), reason=told)
    if job.state == "held":
        doing = f"held ({job.reason})" if job.reason else "held"
    elif job.slurm_state in ("CONFIGURING", "POWER_UP_NODE"):
        doing = "its hosts are starting"
    elif job.slurm_state == "PENDING":
        hosts = "GPUs" if wants_gpus(folder.run) else "hosts"
        doing = words.waits_for(job, hosts=hosts, now=datetime.fromtimestamp(now))
    else:
        doing = "going back into the queue"
    return Verdict(state=job.state, doing=doing, reason=reason, is_live=True)


def _why(job: JobState) -> str:
    """Slurm's reason, and what to do where waiting does not help."""
    if job.reason in job.advice:
        return job.advice or job.reason
    return f"{job.reason}: {job.advice}" if job.advice else job.reason


def _running(folder: Folder, job: JobState | None, now: float, reason: str = "") -> Verdict:
    return Verdict(state="running", doing=_doing(folder, job, now), reason=reason, is_live=True)


def _doing(folder: Folder, job: JobState | None, now: float) -> str:
    """What a run that has its hosts does, by Slurm's word, its ledger and its heartbeat."""
    if job is not None and (word := words.of_running_job(job.slurm_state)) is not None:
        return word
    start = folder.last_start
    if not start or not _is_of(start, job):
        return "starting"
    if "time_end" in start:
        # A start that failed and was explained is followed by the next one in its job, or by the job's end.
        return "starting" if start.get("concluded") else "ending"
    begun, stepped = number(start.get("time_start")) or now, number(folder.progress.get("time")) or 0.0
    sign = heartbeat(folder.run, start)
    if stepped > max(begun, number(sign.get("time")) or 0.0) and now - stepped < SILENCE_S:
        # A step that is younger than the heartbeat, which may be 15 s old and of another phase.
        return words.phase("")
    if not sign:
        return f"starting for {words.span(now - begun)}" if now - begun > _LONG_START_S else "starting"
    if (silence_s := silent_s(sign)) > SILENCE_S:
        return words.silent(silence_s)
    still_s, limit_s = number(sign.get("still_s")), number(sign.get("limit_s"))
    if still_s and limit_s and still_s > limit_s / 2:
        return words.standing_still(still_s)
    return words.phase(str(sign.get("phase")))


def _is_of(start: dict[str, Any], job: JobState | None) -> bool:
    """Whether a line of the ledger is of the job as it runs now, and not of a start before that."""
    if job is None or not job.raw_id or not start.get("job_id"):
        return True
    return (start["job_id"], start.get("restart", 0)) == (job.raw_id, job.restarts)


def _seen_elsewhere(folder: Folder, job: JobState | None, now: float) -> Verdict | None:
    """A run that gives signs of life although nobody here can say that it lives; None where it does not."""
    start = folder.last_start
    if not start or "time_end" in start or (job is not None and job.is_terminal):
        return None
    sign = heartbeat(folder.run, start)
    # Of this host the lock has said more than a heartbeat of some seconds ago.
    if not sign or sign.get("host") == socket.gethostname() or (silence_s := silent_s(sign)) > SILENCE_S:
        return None
    known = f"{job.reason}; " if job is not None and job.reason else ""
    reason = f"{known}its rank 0 on {sign.get('host')} gave a sign of life {silence_s:.0f} s ago"
    return Verdict(state="running", doing=_doing(folder, None, now), reason=reason, is_live=True)


# -- a run that waits no more ---------------------------------------------------------------------


def _ended(folder: Folder, job: JobState | None) -> Verdict:
    if folder.failure:
        return _of_failure(folder.failure)
    if job is not None and job.state == "failed":
        return Verdict(state="failed", doing=words.failed_job(job.slurm_state), reason=job.reason)
    if job is not None and job.reason.startswith(CANNOT_ASK):
        return Verdict(state="unknown", doing="unknown", reason=job.reason)
    if "time_end" in folder.last_start:
        return _of_stop(folder)
    return _without_a_word(folder, job)


def _of_failure(failure: dict[str, Any]) -> Verdict:
    message = str(failure.get("message", "")).partition("\n")[0]
    if failure.get("class") == NO_PROGRESS:
        return Verdict(state="held", doing="held: makes no progress", reason=message)
    where = f"rank {failure.get('rank')} on {failure.get('host')}"
    doing = words.failed(str(failure.get("class") or ""))
    return Verdict(state="failed", doing=doing, reason=f"{where}: {message}")


def _of_stop(folder: Folder) -> Verdict:
    """A run that saved and left, and was not started again."""
    end = folder.last_start
    why = str(end.get("why"))
    reason = f"stopped by {why} after step {end.get('last_step')}; "
    return Verdict(
        state="cancelled", doing=words.stopped(why), reason=f"{reason}{_against(folder)}stk resume goes on"
    )


def _against(folder: Folder) -> str:
    """Why nobody started it again, if somebody decided so."""
    for event in reversed(last_events(folder.run)):
        if event.get("event") in ("requeue", "chained", "cancelled", "released"):
            break
        if event.get("event") == "not_requeued" and event.get("reason"):
            return f"{event['reason']}; "
        if event.get("event") == "requeue_failed" and event.get("reason"):
            line = str(event["reason"]).partition("\n")[0]
            return f"it could not be put back into the queue ({line}); "
    return ""


def _without_a_word(folder: Folder, job: JobState | None) -> Verdict:
    submission = folder.submission
    if folder.faults and not folder.starts and submission is None:
        return Verdict(state="unknown", doing="unknown", reason="; ".join(folder.faults))
    if job is not None and job.state == "finished":
        return Verdict(
            state="failed",
            doing=words.failed_job("COMPLETED"),
            reason="the job ended without finishing the run; its log may say why",
        )
    if submission is not None and submission.cluster == "local" and submission.host == socket.gethostname():
        reason = "its processes are gone without a word (killed?); stk resume goes on"
        return Verdict(state="failed", doing=words.failed("killed"), reason=reason)
    if submission is None and folder.has_intent:
        reason = "it was being submitted, and nobody knows the job; stk submit looks for it"
        return Verdict(state="unknown", doing="being submitted", reason=reason)
    reason = "neither the scheduler nor the run folder says how it ended; stk resume goes on"
    return Verdict(state="unknown", doing="unknown", reason=reason)
