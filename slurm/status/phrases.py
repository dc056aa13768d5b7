"""States in plain words: what is shown for each state of Slurm's and each phase of a run.

Every function here is pure: facts in, a few words out.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from slurm.client.queue import JobState
from toolkit.run.phases import Phase
from toolkit.system.output.few import few

#: Phases of a heartbeat -> what the run is doing.
_PHASES: dict[str, str] = {
    Phase.START: "starting",
    Phase.RENDEZVOUS: "starting",
    Phase.DATA_PREPARATION: "preparing data",
    Phase.MODEL: "starting",
    Phase.LOAD: "loading a checkpoint",
    Phase.SAVE: "saving",
    Phase.EVALUATION: "evaluating",
    Phase.REPORT: "writing its report",
    Phase.PROGRAM: "running",
}

#: Classes of failures (toolkit.run.failure.classes) -> what failed.
_FAILURES = {
    "killed": "killed",
    "peer_lost": "lost a rank",
    "hang": "hung",
    "node_failure": "host lost",
    "ranks_diverged": "ranks diverged",
    "device": "GPU error",
    "communication": "network error",
    "launch": "not started",
    "rendezvous": "ranks did not meet",
    "address_in_use": "port in use",
    "io": "file system",
    "full_disk": "disk full",
    "diverged": "loss diverged",
    "input": "wrong input",
    "out_of_memory": "out of memory",
    "oom_killed": "out of memory",
    "not_deterministic": "not deterministic",
    "import": "import error",
    "checkpoint": "checkpoint",
    "exception": "error",
}

#: Slurm's words for the end of a job -> what failed.
_ENDS = {
    "TIMEOUT": "time limit",
    "OUT_OF_MEMORY": "out of memory",
    "NODE_FAIL": "host lost",
    "BOOT_FAIL": "host did not boot",
    "DEADLINE": "deadline missed",
    "PREEMPTED": "preempted, not requeued",
    "LAUNCH_FAILED": "not started",
    "COMPLETED": "ended too early",
}

#: Slurm's words for a job that has its hosts, but does not compute.
RUNNING = {
    "COMPLETING": "ending",
    "STAGE_OUT": "ending",
    "SUSPENDED": "suspended",
    "STOPPED": "suspended",
    "SIGNALING": "asked to stop",
    "RESIZING": "being resized",
}

#: Reasons of a job that waits -> what it waits for; {hosts} is GPUs where it asked for some. First match.
_REASONS = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"Resources|Priority|Nodes_required|ReqNodeNotAvail.*Reserved|None$|$", "waiting for {hosts}"),
        ("JobArrayTaskLimit", "waiting for its turn in the array"),
        ("DependencyNeverSatisfied", "never starts: what it waits for failed"),
        ("Dependency", "waiting for another job"),
        ("ReqNodeNotAvail|NodeDown|BeginTime.*NodeDown", "waiting for a host that is not available"),
        (r"(QOS|Assoc)Grp", "waiting for others of its account"),
        (
            r"(QOS|Assoc)Max\w*(Submit|Jobs|CPU|Cpu|Billing|GRES|Gres|TRES|Node|Mem)\w*",
            "waiting for own other jobs",
        ),
        (r"Partition(Down|Inactive)", "waiting for its partition to open"),
        ("Licenses", "waiting for licences"),
        ("Reservation", "waiting for its reservation"),
        ("Cleaning", "waiting for its last attempt to end"),
        ("BurstBuffer", "waiting for the burst buffer"),
        ("Prolog", "starting"),
    )
)
#: These add nothing to the words.
_PLAIN = ("", "BeginTime", "Dependency", "JobArrayTaskLimit", "Prolog", "DependencyNeverSatisfied")

_JOB_OF_DEPENDENCY = re.compile(r"\w+:(\d+(?:_(?:\d+|\*))?)")


def waits_for(job: JobState, *, hosts: str = "hosts", now: datetime) -> str:
    """Return the reason why a job waits, in a few words.

    hosts   what it asked for most of all: GPUs, or hosts
    now     local time; decides how the expected start is written
    """
    expected = job.started if job.started and job.started > now else None
    if job.advice:
        return "never starts" + (f" ({job.reason})" if job.reason else "")
    if job.reason.startswith("BeginTime") or (expected and not job.reason):
        since = "after requeue " if job.restarts else ""
        until = f"until {clock(expected, now)}" if expected else "a moment"
        return f"waiting {since}{until}"
    if job.reason == "Dependency" and (others := _JOB_OF_DEPENDENCY.findall(job.depends)):
        return f"waiting for job {few(others, 1)}"
    words = next((words for pattern, words in _REASONS if pattern.match(job.reason)), "waiting")
    return words.format(hosts=hosts) + _details(job.reason, expected, now)


def _details(reason: str, expected: datetime | None, now: datetime) -> str:
    """In brackets: when it might start, and Slurm's own word, which an administrator understands."""
    word = "" if reason in _PLAIN else re.split(r"[,\s(]", reason, maxsplit=1)[0]
    about = f"about {clock(expected, now)}" if expected else ""
    found = ", ".join(filter(None, [about, word]))
    return f" ({found})" if found else ""


def clock(moment: datetime, now: datetime) -> str:
    """A point in time, as short as it can be understood: 14:03, Mon 14:03, 24 Dec 14:03."""
    if moment.date() == now.date():
        return f"{moment:%H:%M}"
    return f"{moment:%a %H:%M}" if abs(moment - now) < timedelta(days=6) else f"{moment:%d %b %H:%M}"


def span(seconds: float) -> str:
    """A span of time in its largest unit, or two of them: 40 s, 4 min, 3 h 05, 2 d 04 h."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d}" if hours < 24 else f"{hours // 24} d {hours % 24:02d} h"


def phase(name: str) -> str:
    """Return a phase of a rank in words; most of them are parts of a step."""
    return _PHASES.get(name, "training")


def failed(kind: str) -> str:
    """Return the class of a failure in words."""
    return f"failed: {_FAILURES.get(kind, kind.replace('_', ' '))}" if kind else "failed"


def failed_job(slurm_state: str) -> str:
    """Return Slurm's state of a failed job in words."""
    return f"failed: {_ENDS[slurm_state]}" if slurm_state in _ENDS else "failed"


def cancelled(reason: str) -> str:
    """A job that a person or Slurm has removed from the queue."""
    if reason.startswith("Dependency"):
        return "cancelled: what it waited for failed"
    return "cancelled"


def stopped(why: str) -> str:
    """An attempt that saved and exited, with no attempt after it."""
    words = {"cancelled": "cancelled", "time_limit": "stopped: time limit", "requested": "stopped: asked to"}
    return words.get(why, f"stopped: {why}")
