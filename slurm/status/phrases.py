"""States in plain words, for each state of Slurm and each phase of a run.

All functions are pure: they take facts and return a few words.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from slurm.client.queue import JobState
from slurm.client.stop_reason import CANCELLED, HOST_LOST, PREEMPTED, REQUESTED, SAVED, TIME_LIMIT
from toolkit.run.phases import Phase
from toolkit.system.output.few import few

#: Phases of a heartbeat -> words for the activity of the run.
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

#: Classes of failures (toolkit.run.failure.classes) -> words.
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
    "segfault": "segmentation fault",
    "not_deterministic": "not deterministic",
    "import": "import error",
    "checkpoint": "checkpoint",
    "exception": "error",
}

#: Slurm's states of an ended job -> words for the failure.
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

#: Reasons of a stop (slurm.client.stop_reason) -> words for the state, and the beginning of a sentence.
_STOPS = {
    PREEMPTED: ("stopped: preempted", "preempted"),
    TIME_LIMIT: ("stopped: time limit", "stopped by its time limit"),
    REQUESTED: ("stopped: asked to", "stopped on request"),
    HOST_LOST: ("stopped: host lost", "stopped, because a host was lost"),
    SAVED: ("stopped: by itself", "stopped by itself, with status 75"),
    CANCELLED: ("cancelled", "cancelled"),
}

#: Slurm's states of a job that has its hosts, but does not compute.
RUNNING = {
    "COMPLETING": "ending",
    "STAGE_OUT": "ending",
    "SUSPENDED": "suspended",
    "STOPPED": "suspended",
    "SIGNALING": "asked to stop",
    "RESIZING": "being resized",
}

#: Reasons of a pending job -> words; {hosts} is GPUs if it requested any. The first match counts.
_REASONS = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (
            r"Resources|Priority|Nodes.required|ReqNodeNotAvail,?.(May.be.r|R)eserved|None$|$",
            "waiting for {hosts}",
        ),
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
#: First words of reasons that are not shown, because ours say the same.
_PLAIN = ("", "BeginTime", "Dependency", "JobArrayTaskLimit", "Prolog", "DependencyNeverSatisfied")
#: Reasons whose first word says too little -> words for the brackets. Spaces may be underscores.
_DETAILS = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        ("Nodes.required", "some are down, drained or reserved"),
        ("ReqNodeNotAvail,?.Reserved.for.maintenance", "reserved for maintenance"),
        ("ReqNodeNotAvail,?.May.be.reserved", "may be reserved for other job"),
    )
)

_JOB_OF_DEPENDENCY = re.compile(r"\w+:(\d+(?:_(?:\d+|\*))?)")


def waits_for(job: JobState, *, hosts: str = "hosts", now: datetime) -> str:
    """Return the reason why a job waits, in a few words.

    hosts   GPUs if the job requested any, else hosts
    now     local time; sets the format of the expected start
    """
    expected = job.started if job.started and job.started > now else None
    if job.advice:
        return "never starts" + (f" ({job.reason})" if job.reason else "")
    if job.reason.startswith("BeginTime") or (expected and not job.reason):
        since = " after requeue" if job.restarts else ""
        return f"waiting{since} until {clock(expected, now)}" if expected else f"waiting a moment{since}"
    if job.reason == "Dependency" and (others := _JOB_OF_DEPENDENCY.findall(job.depends)):
        return f"waiting for job {few(others, 1)}"
    words = next((words for pattern, words in _REASONS if pattern.match(job.reason)), "waiting")
    about = f"about {clock(expected, now)}" if expected else ""
    # Slurm's own word is for an administrator.
    word = re.split(r"[,\s(]", job.reason, maxsplit=1)[0]
    short = "" if word in _PLAIN else word
    detail = next((told for pattern, told in _DETAILS if pattern.match(job.reason)), short)
    details = ", ".join(filter(None, [about, detail]))
    return words.format(hosts=hosts) + (f" ({details})" if details else "")


def clock(moment: datetime, now: datetime) -> str:
    """Return a time in the shortest clear form: 14:03, Mon 14:03, 24 Dec 14:03."""
    if moment.date() == now.date():
        return f"{moment:%H:%M}"
    return f"{moment:%a %H:%M}" if abs(moment - now) < timedelta(days=6) else f"{moment:%d %b %H:%M}"


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
    """Return the words for a job that a person or Slurm has removed from the queue."""
    if reason.startswith("Dependency"):
        return "cancelled: what it waited for failed"
    return "cancelled"


def stopped(why: str) -> str:
    """Return the words for an attempt that saved and exited, with no attempt after it."""
    return _STOPS.get(why, (f"stopped: {why}", ""))[0]


def stopped_by(why: str) -> str:
    """Return the same as the beginning of a sentence."""
    return _STOPS.get(why, ("", f"stopped by {why}"))[1]
