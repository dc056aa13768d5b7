"""Find out why a job was stopped, from Slurm's record and what this process saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from slurm.client.parse import minutes_of, parse_time

#: The signal before the time limit, on which the ranks save. Not USR1: NCCL may catch it.
WARNING_SIGNAL = "USR2"
WARNING = f"SIG{WARNING_SIGNAL}"

PREEMPTED, TIME_LIMIT, REQUESTED, CANCELLED = "preempted", "time_limit", "requested", "cancelled"
#: Slurm has requeued the job, because a host was lost.
HOST_LOST = "host_lost"
#: A command has saved and left without being asked to.
SAVED = "saved"

#: Slurm sends its warning up to a minute early (sbatch's manual; half a minute measured, 22.05).
WARNING_EARLY_S = 60
#: Seconds that may pass between a signal and the controller's answer.
_SLACK_S = 15

#: Reason of a job that ends because a signal has killed its batch script (measured, 22.05).
_SCRIPT_KILLED = "JobLaunchFailure"

_BACK = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "CONFIGURING"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StopEvidence:
    """What a process knows about the stop of its job.

    reason      the reason of JobStop: a signal's name, or TIME_LIMIT; SAVED if the attempt has recorded it
    restart     how often the job was requeued before this start
    signal_s    the lead of Slurm's warning before the time limit
    requested   whether `stk requeue` asked for this stop
    asked_s     seconds from the first signal that asked for the stop to the last one; None if unknown
    """

    reason: str | None
    restart: int = 0
    signal_s: int = 0
    requested: bool = False
    asked_s: float | None = None


def classify_stop(job: Mapping[str, str], seen: StopEvidence, now: float) -> str:
    """Return preempted, time_limit, requested, saved or cancelled, from the output of `scontrol show job`.

    A stop without a trace in Slurm counts as saved if the attempt has recorded that, else as requested: a
    person signalled the processes. In both cases the run must continue. The same holds if the batch script
    was killed. A job may be cancelled while it saves before its time limit.
    """
    state = job.get("JobState", "")
    if is_preempted(job):
        return PREEMPTED
    if state == "TIMEOUT" or job.get("Reason") == "TimeLimit":
        return TIME_LIMIT
    if is_back(job, seen.restart):
        return REQUESTED
    if state in ("CANCELLED", "COMPLETING") and job.get("Reason") != _SCRIPT_KILLED:
        return TIME_LIMIT if _has_run_out(job) else CANCELLED
    if seen.reason == TIME_LIMIT:
        return TIME_LIMIT
    if seen.reason == WARNING and not seen.requested and _explains_warning(job, seen.signal_s, now):
        return TIME_LIMIT
    return SAVED if seen.reason == SAVED else REQUESTED


def is_preempted(job: Mapping[str, str]) -> bool:
    """Whether the current start of the job is being preempted.

    If a preemption ends a job, PreemptTime is the time of its end; if scancel ends it in the grace period,
    PreemptTime stays the begin of that period (measured, 22.05).
    """
    preempted, started = parse_time(job.get("PreemptTime", "")), parse_time(job.get("StartTime", ""))
    if preempted is None or (started is not None and preempted < started):
        return False
    end = parse_time(job.get("EndTime", ""))
    is_ended = job.get("JobState", "") in ("CANCELLED", "COMPLETING")
    return not is_ended or end is None or end <= preempted + timedelta(seconds=1)


def is_back(job: Mapping[str, str], restart: int) -> bool:
    """Whether the job was requeued since this start.

    While its processes are being ended, its state is COMPLETING, but Restarts is already increased.
    """
    restarts = job.get("Restarts", "")
    return job.get("JobState", "") in _BACK or (restarts.isdecimal() and int(restarts) > restart)


def end_of(job: Mapping[str, str], told: float | None = None) -> float | None:
    """Return the end of the job in seconds since 1970; None if it has no limit.

    Slurm prints local time. In the hour that repeats when clocks go back, it fits two times: `told`, which
    the job got at its start, if it is one of them, else the later.
    """
    end = parse_time(job.get("EndTime", ""))
    if end is None:
        return None
    times = (end.timestamp(), end.replace(fold=1).timestamp())
    return told if told in times else max(times)


def told_end(environ: Mapping[str, str]) -> float | None:
    """Return the end that Slurm told the job at its start, in seconds since 1970; None if it did not."""
    end = environ.get("SLURM_JOB_END_TIME", "")
    return float(end) if end.isdecimal() else None


def length_s(job: Mapping[str, str]) -> float | None:
    """Return the seconds from the job's start to its end; None if it has no limit."""
    start, end = parse_time(job.get("StartTime", "")), parse_time(job.get("EndTime", ""))
    if start is None or end is None:
        return None
    seconds = end.timestamp() - start.timestamp()
    return seconds if seconds > 0 else end.replace(fold=1).timestamp() - start.timestamp()


def job_target(environ: Mapping[str, str]) -> str:
    """Return the id for `scontrol`: of an array that of this task, of a heterogeneous job its leader's.

    The id of an array alone means all of its tasks.
    """
    if is_array_task(environ):
        return f"{environ['SLURM_ARRAY_JOB_ID']}_{environ['SLURM_ARRAY_TASK_ID']}"
    return environ.get("SLURM_HET_JOB_ID") or environ["SLURM_JOB_ID"]


def component_ids(environ: Mapping[str, str]) -> list[str]:
    """Return the ids of the components of a heterogeneous job; the id of any other job."""
    ids = [environ[name] for name in sorted(environ) if name.startswith("SLURM_JOB_ID_HET_GROUP_")]
    return ids or [job_target(environ)]


def is_array_task(environ: Mapping[str, str]) -> bool:
    return "SLURM_ARRAY_JOB_ID" in environ


def restarts_before(environ: Mapping[str, str]) -> int:
    """Return how often the job was requeued before this start; the variable is unset in the first start."""
    return int(environ.get("SLURM_RESTART_COUNT") or 0)


def _has_run_out(job: Mapping[str, str]) -> bool:
    """Whether an ending job has reached its time limit; its EndTime is the real end by then."""
    length, limit = length_s(job), minutes_of(job.get("TimeLimit", ""))
    return length is not None and limit is not None and length >= 60 * limit


def _explains_warning(job: Mapping[str, str], signal_s: int, now: float) -> bool:
    end = end_of(job)
    return end is not None and end - now <= signal_s + WARNING_EARLY_S + _SLACK_S
