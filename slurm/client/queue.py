"""Map Slurm's states and reasons of jobs to our eight states."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from slurm.client import programs
from slurm.client.parse import Accounted, Job, base_id, is_job_id

State = Literal["pending", "running", "requeued", "finished", "failed", "cancelled", "held", "unknown"]

#: States that do not change any more. `unknown` is not among them: a later query may find the job.
TERMINAL: frozenset[State] = frozenset({"finished", "failed", "cancelled"})

#: Our state -> Slurm's, as the controller reports them.
_WORDS: dict[State, str] = {
    "pending": "PENDING CONFIGURING POWER_UP_NODE EXPEDITING",
    "running": "RUNNING COMPLETING SIGNALING STAGE_OUT RESIZING SUSPENDED STOPPED UPDATE_DB",
    "requeued": "REQUEUED REQUEUE_FED",
    "held": "REQUEUE_HOLD SPECIAL_EXIT RESV_DEL_HOLD",
    "finished": "COMPLETED",
    # PREEMPTED: only with PreemptMode=CANCEL, or for a job that may not be requeued. A job that is requeued
    # goes from COMPLETING to PENDING (measured, 22.05).
    "failed": "FAILED TIMEOUT OUT_OF_MEMORY PREEMPTED DEADLINE LAUNCH_FAILED RECONFIG_FAIL",
    "cancelled": "CANCELLED",
}
#: Slurm's state -> ours.
STATES: dict[str, State] = {word: state for state, words in _WORDS.items() for word in words.split()}

#: Slurm's states in which a job is started again if it may be requeued. They are final if the controller has
#: forgotten the job, or may not requeue it.
INTERRUPTED = frozenset({"NODE_FAIL", "BOOT_FAIL", "REQUEUED"})

#: Reasons of a pending job that only a user or an administrator can clear.
HELD_REASONS = (
    "JobHeldUser",
    "JobHeldAdmin",
    "JobHoldMaxRequeue",
    "launch failed requeued held",
    "launch_failed_requeued_held",
    "job requeued in held state",
    "job_requeued_in_held_state",
)

#: Reasons of a pending job that time does not clear, unless hosts are down, and what to do about each.
NEVER_CLEARS = tuple(
    (re.compile(pattern), advice)
    for pattern, advice in (
        ("PartitionTimeLimit", "the time limit is above the partition's: cancel, lower resources.time"),
        (
            "PartitionNodeLimit",
            "the partition has too few nodes that are up: wait, or change resources.nodes",
        ),
        ("PartitionConfig", "the partition does not allow it: cancel, see `scontrol show partition`"),
        ("AccountNotAllowed|Job's account not", "not for this account: cancel, change partition or account"),
        ("QOSNotAllowed|Job's QOS not", "not for this QOS: cancel, change partition or qos"),
        (r"(Assoc|QOS)MaxWallDurationPerJob", "the time limit is above account's or QOS's: cancel, lower it"),
        (r"(Assoc|QOS)M(ax|in)\w+Per(Job|Node)", "one job may not request this much: cancel, request less"),
        ("BadConstraints", "no host that is up has all of it: wait, or check gres, constraint, mem and cpus"),
        ("DependencyNeverSatisfied", "the job it waits for did not end as required: cancel it"),
        ("InvalidAccount", "the account does not exist: cancel, change resources.account"),
        ("InvalidQOS", "the QOS does not exist: cancel, change resources.qos"),
    )
)

#: For several records of one id (a whole array), the state that comes first here counts.
_STATE_PRECEDENCE: tuple[State, ...] = (
    "running", "requeued", "pending", "held", "unknown", "failed", "cancelled", "finished",
)  # fmt: skip


#: The largest number of characters of a list of ids in one argument.
_LONGEST_LIST = 120_000


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """The state of a job.

    state        finished means that the batch script returned 0: only the run's folder shows whether the
                 run is complete
    slurm_state  Slurm's word, empty if neither controller nor accounting has the job
    reason       why it waits, or how it ended
    advice       what to do if waiting does not help; else empty
    restarts     how often it was requeued
    hosts        a host list
    started      local time; the expected start while it waits
    raw_id       its number, which an array task has too; of a heterogeneous job that of the leader
    depends      the jobs that it waits for, as Slurm writes them
    work_dir     empty if only accounting has the job
    name         the job's name
    """

    state: State
    slurm_state: str = ""
    reason: str = ""
    advice: str = ""
    restarts: int = 0
    hosts: str = ""
    started: datetime | None = None
    raw_id: str = ""
    depends: str = ""
    work_dir: str = ""
    name: str = ""

    @property
    def is_terminal(self) -> bool:
        return self.state in TERMINAL


UNKNOWN = JobState(state="unknown", reason="neither the controller nor accounting knows the job")
#: State of an array task that accounting does not have, although it has others of the array: the task was
#: cancelled while it was pending. Such a task gets no record, and the controller forgets it at once.
NEVER_STARTED = JobState(state="cancelled", slurm_state="CANCELLED", reason="cancelled before its start")


def poll(ids: Iterable[str]) -> dict[str, JobState]:
    """Return the states of these jobs, with one call of squeue, and one of sacct for forgotten jobs.

    An id may name a job, an array task (also by its raw id), or a whole array or heterogeneous job. Raises
    SlurmUnavailable if no controller answers.
    """
    ids = list(dict.fromkeys(ids))
    jobs = programs.jobs(ids=_ids_to_query(ids))
    states = _pick(ids, {(job.job_id, job.raw_id): from_controller(job) for job in jobs})
    gone = [key for key in ids if key not in states]
    starts: dict[tuple[str, str], list[Accounted]] = {}
    for start in programs.accounting(_ids_to_query(list(dict.fromkeys(map(base_id, gone))))):
        starts.setdefault((start.job_id, start.raw_id), []).append(start)
    states |= _pick(gone, {key: from_accounting(group) for key, group in starts.items()})
    arrays = {base_id(job_id) for job_id, _ in starts if "_" in job_id}
    never_started = {key for key in gone if "_" in key and is_job_id(key) and base_id(key) in arrays}
    return {key: states.get(key, NEVER_STARTED if key in never_started else UNKNOWN) for key in ids}


def _ids_to_query(ids: list[str]) -> list[str]:
    """Return the ids to query; if there are too many, arrays instead of tasks, and only the newest jobs.

    One argument of a program may have 128 KiB. Omitted jobs are reported as unknown; their folders decide.
    """
    if sum(map(len, ids)) + len(ids) <= _LONGEST_LIST:
        return ids
    bases = sorted({base_id(key) for key in ids}, key=lambda key: (len(key), key), reverse=True)
    length = itertools.accumulate(len(key) + 1 for key in bases)
    return [key for key, so_far in zip(bases, length, strict=True) if so_far <= _LONGEST_LIST]


def from_controller(job: Job) -> JobState:
    """Return the state of a job from the controller's record."""
    word = _word(job.state)
    state: State = STATES.get(word, "unknown")
    if word in INTERRUPTED:
        state = "requeued" if job.requeue else "failed"
    elif word == "PENDING" and job.reason.startswith(HELD_REASONS):
        state = "held"
    elif word == "PENDING" and job.restarts:
        state = "requeued"
    return JobState(
        state=state,
        slurm_state=word,
        reason=job.reason,
        advice=_advice(state, job),
        restarts=job.restarts,
        hosts=job.hosts,
        started=job.started,
        raw_id=job.raw_id,
        depends=job.dependency,
        work_dir=job.work_dir,
        name=job.name,
    )


def from_accounting(starts: list[Accounted]) -> JobState:
    """Return the state of a job that only accounting has, from its starts in order; the last one counts.

    If accounting shows a job as pending or running that the controller has forgotten, its end was not
    recorded: unknown.
    """
    last = starts[-1]
    # The number may have been that of another job before.
    starts = [each for each in starts if each.name == last.name]
    word = _word(last.state)
    state: State = "failed" if word in INTERRUPTED else STATES.get(word, "unknown")
    return JobState(
        state=state if state in TERMINAL else "unknown",
        slurm_state=word,
        reason=_ending(last),
        restarts=len(starts) - 1,
        hosts=last.hosts,
        started=last.started,
        raw_id=last.raw_id,
        name=last.name,
    )


def _word(state: str) -> str:
    """Return Slurm's state without a suffix, as in `CANCELLED by 1000` or `RUNNING+`."""
    return state.split(" ")[0].split(",")[0].rstrip("+")


def _advice(state: State, job: Job) -> str:
    if state == "held" and job.reason.startswith("JobHeldAdmin"):
        return f"held ({job.reason}): only an administrator can release it"
    if state == "held":
        return f"held ({job.reason or job.state}): scontrol release {job.job_id}"
    if state not in ("pending", "requeued"):
        return ""
    return next((advice for pattern, advice in NEVER_CLEARS if pattern.match(job.reason)), "")


def _ending(last: Accounted) -> str:
    if last.state.startswith("CANCELLED by "):
        return f"cancelled by user id {last.state.removeprefix('CANCELLED by ')}"
    return "" if last.exit_code in ("", "0:0") else f"exit code {last.exit_code}"


def _pick(ids: list[str], known: Mapping[tuple[str, str], JobState]) -> dict[str, JobState]:
    """Return the state of each known id; of an array by its states, of a heterogeneous job its leader's.

    known   by id and raw id; pending tasks of an array share the array's raw id
    """
    wholes: dict[str, list[JobState]] = {}
    exact: dict[str, JobState] = {}
    for (job_id, raw_id), state in known.items():
        wholes.setdefault(base_id(job_id), []).append(state)
        exact[raw_id] = exact[job_id] = state
    for key, group in wholes.items():
        dominant = min(group, key=lambda state: _STATE_PRECEDENCE.index(state.state))
        exact[key] = exact.get(f"{key}+0", dominant)
    return {key: exact[key] for key in ids if key in exact}
