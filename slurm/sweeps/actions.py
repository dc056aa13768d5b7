"""Start, resume and cancel runs of a sweep, and keep its record up to date."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import NamedTuple

from slurm.client import programs
from slurm.runs.cancel_requeue import (
    SUSPENDED,
    cancel_following,
    cancel_jobs,
    check_jobs,
    end_launcher,
    unsaved,
)
from slurm.status.liveness import is_launcher_alive, is_training_here
from slurm.status.rows import RunStatus
from slurm.status.submissions import Submission, exclusively, hold, last_resources, last_submission
from slurm.submission.submit import resolve_if_possible
from slurm.sweeps.candidates import Candidate, states
from slurm.sweeps.submission import SubmittedRuns, keep_for_later, submit_runs, waiting
from slurm.sweeps.submit_array import settle_arrays
from toolkit.config import load_resolved, load_to_run
from toolkit.config.schema import Experiment
from toolkit.errors import ConfigError, RunBusy, StkError, UserError
from toolkit.files import write_atomic
from toolkit.run.folder_trust import check_folder, refuse_colon
from toolkit.run.kept_code.code_snapshot import LostCode
from toolkit.run.kept_code.edited_code import (
    begins_anew,
    check_new_code,
    edit_warnings_of_many,
    other_code_warnings,
    take_new_code,
)
from toolkit.run.new_settings import take_new_settings
from toolkit.run.run_dir import RunDir
from toolkit.sweeps.folder import Record, SweepDir, make_sweep, read_arrays, read_record, write_record
from toolkit.system.output.few import few

#: Ids in one call of scancel: the length of a command line is limited.
_IDS_A_CALL = 500
#: What to do about a live run that `cancel` cannot end, after its id.
END_THERE = "runs in a terminal, your own batch script, on another host, or as another user, who can end it"


def start(
    folder: SweepDir,
    record: Record,
    runs: Sequence[Candidate],
    live: Sequence[str],
    *,
    max_parallel: int | None = None,
    at_most: int | None = None,
    tick: Callable[[], None] = lambda: None,
) -> SubmittedRuns:
    """Submit runs to Slurm and record the sweep; see `submit_runs`. Also raises UntrustedFolder.

    live           job ids of the sweep's live runs
    max_parallel   None: max_parallel of the sweep, else of the resources
    """
    with _held(folder), _restored_on_error(folder, runs):
        _write_down(folder, record, runs)
        if not runs:
            return SubmittedRuns()
        throttle = max_parallel or record.max_parallel or runs[0].experiment.resources.max_parallel
        return submit_runs(folder, runs, throttle=throttle, live=live, at_most=at_most, tick=tick)


@contextmanager
def _restored_on_error(folder: SweepDir, runs: Sequence[Candidate]) -> Iterator[None]:
    """On an error restore the files of a sweep, unless runs are submitted, or may be."""
    before, arrays = read_record(folder), read_arrays(folder)
    waited = folder.waiting.read_text(encoding="utf-8") if folder.waiting.exists() else ""
    try:
        yield
    except programs.AnswerLost:
        raise
    except BaseException:
        made = [
            one.run
            for one in runs
            if one.run.intent.exists() or (one.now is None and one.run.submissions.exists())
        ]
        if made or read_arrays(folder) != arrays:
            raise
        if before is None:
            shutil.rmtree(folder.path, ignore_errors=True)
        else:
            write_record(folder, before)
            write_atomic(folder.waiting, waited) if waited else folder.waiting.unlink(missing_ok=True)
        raise


def write_down(folder: SweepDir, record: Record, runs: Sequence[Candidate]) -> None:
    """Record a sweep before its runs are started, so that `to_resume` finds runs that never began.

    Before it writes the record, it raises UserError if runs in this folder could not use their own code,
    UntrustedFolder, and RunBusy if another command has added runs.
    """
    with _held(folder):
        _write_down(folder, record, runs)


def _held(folder: SweepDir) -> AbstractContextManager[None]:
    """Make a sweep's folder and hold its lock."""
    refuse_colon(folder.path)
    make_sweep(folder)
    check_sweep(folder)
    return hold(folder.lock, f"the sweep {folder.name}")


def _write_down(folder: SweepDir, record: Record, runs: Sequence[Candidate]) -> None:
    """Write the record of a sweep that is locked. Raises RunBusy if another command has added runs."""
    now = read_record(folder)
    if now and not {each.run_id for each in now.everyone} <= {each.run_id for each in record.everyone}:
        # They would be dropped.
        added = f"another command has just added runs to the sweep {folder.name}"
        raise RunBusy(f"{added}: repeat the command")
    write_record(folder, record)
    keep_for_later(folder, [one for one in runs if one.now is None])


def check_sweep(folder: SweepDir) -> None:
    """Raise UntrustedFolder if another user may write what runs of the sweep are started from."""
    check_folder(folder.path, folder.record, folder.waiting, folder.arrays)


def renew_code(known: Sequence[Candidate], *, asked: bool, cluster: str, dry_run: bool = False) -> list[str]:
    """Give the current code to runs of a sweep that accept it; return warnings about edited code.

    known   all runs of the sweep; skipped runs may have other code, which is reported
    asked   whether runs with a checkpoint get it too

    Raises SlurmUnavailable if Slurm may have a job of a run and does not answer, and ConfigError if the code
    that was asked for does not take the values of a run.
    """
    if cluster != "local" and not dry_run:
        for one in known:
            if one.now is not None:
                one.now.check_known()
    there = [one for one in known if one.now is not None and not one.skipped]
    warnings = edit_warnings_of_many([(one.run, one.experiment) for one in there], new_code=asked)
    for one in there if asked and warnings else ():
        # Before any run has new code.
        check_new_code(one.run, one.experiment)
    lost: list[LostCode] = []
    for one in there if not dry_run else ():
        with exclusively(one.run):
            resolve_if_possible(one.run)
            if not _was_started(one):
                try:
                    if warnings:
                        take_new_code(one.run, one.experiment, asked=asked)
                    take_new_settings(one.run, one.experiment)
                except LostCode as error:
                    # A warning says so. The run itself refuses to train, and the others go on.
                    lost.append(error)
    if lost and len(lost) == sum(not one.skipped for one in known):
        raise lost[0]
    live = sum(one.now is not None and one.now.is_live for one in known)
    if asked and live:
        warnings.append(
            f"runs that are live and keep their code: {live}. stk sweep cancel ends them, stk sweep resume "
            "--new-code continues them"
        )
    if any(asked or begins_anew(one.run) for one in known if not one.skipped):
        warnings += other_code_warnings((one.run, one.experiment) for one in known if one.skipped)
    return warnings


def _was_started(one: Candidate) -> bool:
    """Whether another command has started a run since its state was read."""
    last = last_submission(one.run)
    # A sweep may have thousands of runs: Slurm is asked only about those with a new job.
    if one.now is not None and one.now.job_id == (last and last.job_id):
        return is_training_here(one.run)
    return any(row.may_live for row in states([one.run]).values())


class Known(NamedTuple):
    """Members of a sweep, job ids of the live ones, and warnings about members that are left out."""

    runs: list[Candidate]
    live: list[str]
    warnings: list[str]


def to_resume(folder: SweepDir, record: Record) -> Known:
    """Return members that have a folder or are not submitted yet, and job ids of the live ones.

    Each keeps its experiment and resources, even if the file has changed. Raises ConfigError if the record of
    runs that are not submitted yet is damaged, or the configs of all runs that could be resumed.
    """
    settle_arrays(folder)
    runs = [folder.run(each.run_id) for each in record.members]
    # First: what is submitted meanwhile leaves this list, and has a folder then.
    later = waiting(folder)
    now = states(runs)
    removed = states([folder.run(each.run_id) for each in record.removed])
    live = [row.job_id for row in [*now.values(), *removed.values()] if row.is_live and row.job_id]
    known, gone, damaged = [], [], []
    for run in runs:
        row = now.get(run)
        is_done = row is not None and (row.is_live or row.state == "finished")
        if row is None and run.run_id not in later:
            gone.append(run.run_id)
            continue
        try:
            experiment = later[run.run_id] if row is None else _experiment(run, is_done)
        except ConfigError as error:
            # A damaged config of one run does not stop the others.
            damaged += [] if is_done else [error]
            continue
        known.append(Candidate(experiment=experiment, run=run, now=row))
    if damaged and all(one.skipped for one in known):
        raise damaged[0]
    warnings = [f"a run is left out: {error.faults[0]}" for error in damaged]
    if gone:
        warnings.append(f"no folder any more, the same `stk sweep FILE …` makes it anew: {few(gone, 5)}")
    return Known(known, live, warnings)


def _experiment(run: RunDir, is_done: bool) -> Experiment:
    """Return the stored experiment of a run, to start it again unless it has finished or is live."""
    if is_done:
        return load_resolved(run.config)
    return replace(load_to_run(run.config), resources=last_resources(run))


class Cancelled(NamedTuple):
    """Ids of cancelled runs, and of runs that only their own host or user can cancel; warnings."""

    runs: list[str]
    elsewhere: list[str]
    warnings: list[str]


def cancel(folder: SweepDir, rows: Sequence[RunStatus], *, dry_run: bool = False) -> Cancelled:
    """Cancel live runs; a dry run only returns them.

    Raises UserError if Slurm does not confirm a job as its run's; SchedulerError.
    """
    for row in rows:
        row.check_known()
    live = [row for row in rows if row.is_live]
    ids: dict[str, RunDir] = {}
    warnings: list[str] = []
    local: list[tuple[RunDir, Submission]] = []
    elsewhere = []
    for row in live:
        submission = last_submission(folder.run(row.run_id))
        is_script = submission is not None and submission.is_script
        if submission is not None and submission.cluster == "slurm" and row.job_id and not is_script:
            ids[submission.job_id] = folder.run(row.run_id)
        elif submission is not None and is_launcher_alive(folder.run(row.run_id), submission):
            local.append((folder.run(row.run_id), submission))
        else:
            elsewhere.append(row.run_id)
    found = Cancelled([row.run_id for row in live if row.run_id not in elsewhere], elsewhere, warnings)
    if dry_run:
        return found
    for first in range(0, len(ids), _IDS_A_CALL):
        part = dict(list(ids.items())[first : first + _IDS_A_CALL])
        before = check_jobs(part)
        cancel_jobs(part)
        warnings += [f"{run.run_id}: {unsaved(run)}" for job, run in part.items() if before[job] == SUSPENDED]
    for run, submission in local:
        try:
            end_launcher(run, submission)
        except UserError:
            found.runs.remove(run.run_id)
            elsewhere.append(run.run_id)
    for job_id, run in ids.items():
        try:
            cancel_following(run, job_id)
        except StkError:
            warnings.append(f"{run.run_id}: its next job may have been submitted: stk cancel {run.run_id}")
    return found
