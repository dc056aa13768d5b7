"""Submit the runs of a sweep: as many as Slurm accepts, in as few arrays as it allows."""

from __future__ import annotations

import getpass
import json
import os
import resource
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from slurm.client import programs
from slurm.client.queue import TERMINAL, from_controller
from slurm.config.resources import Resources
from slurm.status.submissions import Submission
from slurm.submission.batch.batch_script import JobPlan
from slurm.submission.batch.job_options import components
from slurm.submission.checks.preflight import Facts, preflight
from slurm.sweeps.array import ArrayPlan
from slurm.sweeps.candidates import Candidate
from slurm.sweeps.splitting import split
from slurm.sweeps.submit_array import submit_array
from toolkit.config import check, to_plain
from toolkit.config.schema import Experiment
from toolkit.errors import SlurmRefused, StkError
from toolkit.files import read_json_lines, write_atomic
from toolkit.registry import kept_files
from toolkit.run.kept_code.code_snapshot import copy_code
from toolkit.run.run_dir import RunDir
from toolkit.sweeps.folder import SweepDir, read_arrays

#: Reason for a skipped run that another process started before this one had the lock.
ELSEWHERE = "was started by another command"


@dataclass(slots=True)
class SubmittedRuns:
    """The result of a submission.

    jobs    the submission of each submitted run
    arrays  ids of the arrays
    later   runs that are not submitted now; why: the reason
    code    exit code: 0 also if limits of Slurm leave runs for later
    """

    jobs: dict[RunDir, Submission] = field(default_factory=dict)
    arrays: list[str] = field(default_factory=list)
    later: list[Candidate] = field(default_factory=list)
    why: str = ""
    code: int = 0


def submit_runs(
    sweep: SweepDir,
    wanted: Sequence[Candidate],
    *,
    throttle: int | None,
    live: Iterable[str],
    at_most: int | None,
    tick: Callable[[], None],
) -> SubmittedRuns:
    """Submit runs, and record those that are submitted later.

    throttle  largest number of tasks that run at the same time in all arrays of the sweep
    live      job ids of the sweep's live runs
    at_most   largest number of runs that are submitted now, besides Slurm's own limits
    tick      called for each run whose files are written
    Raises UserError, and SlurmRefused with all known limits before anything is written; SchedulerError if
    Slurm did not accept the first array.
    """
    for alike in _by_resources(wanted):
        facts = preflight(alike[0].experiment.resources)
        # Raises UserError if no batch script can express a run; one is enough, as folders only differ by id.
        plan = JobPlan(experiment=alike[0].experiment, run=alike[0].run)
        str(plan)
        str(ArrayPlan(plans=(plan,), folder=sweep.array("array")))
    slots, why = free_slots(wanted[0].experiment.resources, facts)
    if at_most is not None and (slots is None or at_most < slots):
        slots, why = at_most, f"--at-most is {at_most}"
    count = len(wanted) if slots is None else min(slots, len(wanted))
    handed = SubmittedRuns(later=list(wanted[count:]), why=why if count < len(wanted) else "")
    if count:
        if facts.max_array_size == 0:
            why = "This cluster has no job arrays (limit of tasks: 0): use stk submit for each run"
            raise SlurmRefused(why)
        _submit_arrays(sweep, wanted[:count], facts.max_array_size, throttle, list(live), handed, tick)
    keep_for_later(sweep, handed.later)
    return handed


def _by_resources(wanted: Iterable[Candidate]) -> list[list[Candidate]]:
    """Return groups of runs that can be in one array, whose tasks must have the same resources."""
    found: dict[str, list[Candidate]] = {}
    for one in wanted:
        found.setdefault(repr(one.experiment.resources), []).append(one)
    return list(found.values())


def _unfinished_arrays(sweep: SweepDir, live: Iterable[str]) -> dict[str, int]:
    """Return the sweep's unfinished arrays, with the largest number of runs that each may run at once."""
    tasks = Counter(job_id.partition("_")[0] for job_id in live)
    throttles = {array.job_id: array.throttle for array in read_arrays(sweep)}
    return {
        array: min(count, throttles[array] or count) for array, count in tasks.items() if array in throttles
    }


def _submit_arrays(
    sweep: SweepDir,
    wanted: Sequence[Candidate],
    largest: int | None,
    throttle: int | None,
    live: Sequence[str],
    handed: SubmittedRuns,
    tick: Callable[[], None],
) -> None:
    unique = uuid.uuid4().hex[:8]
    code: dict[RunDir, Path] = {}
    _allow_open_files(len(wanted))
    ids: list[str] = []
    # The others wait for the first and largest, which takes the whole throttle.
    groups = sorted(_by_resources(wanted), key=len, reverse=True)
    left = [one for alike in groups for one in alike]
    try:
        _copy_code(sweep, unique, wanted, code)
        for alike in groups:
            first = len(ids)
            busy = _unfinished_arrays(sweep, [*live, *(job.job_id for job in handed.jobs.values())])
            for part in split(len(alike), largest, throttle, busy):
                chosen = left[: part.size]
                follows = [] if part.follows is None else [ids[first + part.follows]]
                after = (*part.after, *filter(None, follows))
                name = f"{sweep.name}-{unique}" + (f".{len(ids)}" if ids else "")
                jobs = submit_array(sweep, name, chosen, code, throttle=part.throttle, after=after, tick=tick)
                left = left[part.size :]
                ids.append(next((job.job_id.partition("_")[0] for job in jobs.values()), ""))
                handed.jobs |= jobs
    except programs.AnswerLost:
        raise
    except StkError as error:
        if not handed.jobs:
            raise
        # Submitted runs stay in the queue; Slurm may accept the rest when some have ended.
        handed.later[:0] = left
        handed.why, handed.code = str(error), 0 if isinstance(error, SlurmRefused) else error.exit_code
    finally:
        handed.arrays += filter(None, ids)
        # Kept if the code of a run is a link to it.
        used = {os.path.realpath(one.run.code) for one in wanted}
        for copy in {os.path.realpath(copy) for copy in code.values()} - used:
            shutil.rmtree(copy, ignore_errors=True)


def _copy_code(sweep: SweepDir, unique: str, wanted: Sequence[Candidate], code: dict[RunDir, Path]) -> None:
    """Copy the code of runs without code, and set `code` for each; runs with the same files share a copy."""
    copies: dict[object, Path] = {}
    for one in wanted:
        if one.run.code.exists():
            continue
        kind, files = one.experiment.task.kind, tuple(kept_files(one.experiment))
        code[one.run] = copies.setdefault((kind, files), sweep.code(f"{unique}.{len(copies)}"))
        if not code[one.run].exists():
            copy_code(code[one.run], [kind], files)


def _allow_open_files(runs: int) -> None:
    """Raise the limit of open files: the lock of each run is an open file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = runs + 256
    if soft != resource.RLIM_INFINITY and soft < needed:
        most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def keep_for_later(sweep: SweepDir, later: Sequence[Candidate]) -> None:
    """Record the experiments that were not submitted, because their file may change."""
    if not later:
        sweep.waiting.unlink(missing_ok=True)
        return
    lines = (json.dumps({"run_id": one.run.run_id, "experiment": to_plain(one.experiment)}) for one in later)
    write_atomic(sweep.waiting, "".join(f"{line}\n" for line in lines))


def waiting(sweep: SweepDir) -> Mapping[str, Experiment]:
    """Return the experiments that are not submitted yet, by run id."""
    return {
        line["run_id"]: check(line["experiment"], is_stored=True) for line in read_json_lines(sweep.waiting)
    }


def free_slots(resources: Resources, facts: Facts) -> tuple[int | None, str]:
    """Return the number of further jobs the user may submit, and the limit; None if none is known.

    Jobs of other users and limits of a whole account are not known here: sbatch refuses runs above them.
    """
    slots, why = facts.max_jobs, f"MaxJobCount is {facts.max_jobs}"
    if not facts.limits_submits:
        return slots, why
    options, user = components(resources)[0].options, getpass.getuser()
    account, qos = (str(options[name]) if options.get(name) else None for name in ("account", "qos"))
    if (found := programs.submit_limit(user, account, qos)) is None:
        return slots, why
    limit, kind, name = found
    jobs = programs.jobs(user=user, **{kind: name})
    queued = sum(from_controller(job).state not in TERMINAL for job in jobs)
    left = max(0, limit - queued)
    if slots is not None and slots <= left:
        return slots, why
    return left, f"MaxSubmitJobs of {kind} {name} is {limit}, and it has {queued} jobs of yours"
