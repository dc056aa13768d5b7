"""`stk sweep status`, `cancel`, `resume` and `report`, and how `stk sweep` starts and reports runs."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from slurm.client.programs import AnswerLost
from slurm.client.topology import scrub
from slurm.commands.common import warn
from slurm.commands.experiments.run import explain, take_away
from slurm.commands.experiments.submit import choose
from slurm.commands.results.report import written
from slurm.config.rank_count import local_processes
from slurm.status.submissions import recover_lost
from slurm.sweeps.actions import END_THERE, cancel, check_sweep, renew_code, start, to_resume
from slurm.sweeps.candidates import Candidate, states
from slurm.sweeps.submission import ELSEWHERE, SubmittedRuns
from slurm.sweeps.submit_array import settle_arrays
from toolkit.errors import RunBusy, UserError
from toolkit.exit_codes import ExitCode
from toolkit.launch.machines.coordination import Nodes
from toolkit.launch.machines.layout import Machines
from toolkit.run.create_run import fill_run
from toolkit.run.run_dir import RunDir, experiment_dir
from toolkit.sweeps.folder import Record, SweepDir, find_sweep, find_sweeps, read_record
from toolkit.system.output.json_text import json_text

#: The least number of runs for a progress bar while their folders are made.
_MANY = 50


def _status(arguments: Namespace) -> int:
    from slurm.status.table import console_for_tables
    from slurm.sweeps.overview import drawn, overview

    folder, record = _named(arguments)
    found = overview(folder, record)
    if arguments.json:
        print(json_text(found.to_json()))
    else:
        console_for_tables().print(drawn(found))
    return 0


def _cancel(arguments: Namespace) -> int:
    folder, record = _named(arguments)
    members = record.everyone if arguments.cancel_removed else record.members
    runs = [folder.run(each.run_id) for each in members]
    if not arguments.dry_run:
        _find_lost_jobs(folder, runs)
    rows = states(runs)
    cancelled, elsewhere, warnings = cancel(folder, list(rows.values()), dry_run=arguments.dry_run)
    warn(warnings)
    if arguments.json:
        print(json.dumps({"sweep": folder.name, "cancelled": cancelled, "elsewhere": elsewhere}))
        return 0
    if arguments.dry_run:
        for run_id in cancelled:
            print(f"{run_id}  {rows[folder.run(run_id)].state}")
    elif cancelled:
        print(f"runs cancelled: {len(cancelled)}")
    if not (cancelled or elsewhere):
        print("no run is live: nothing to cancel")
    for run_id in elsewhere:
        print(f"{run_id} {END_THERE}")
    removed = () if arguments.cancel_removed else record.removed
    rows = states([folder.run(each.run_id) for each in removed])
    if live := sum(row.is_live for row in rows.values()):
        print(f"removed runs that are live: {live}; --cancel-removed ends them too")
    return 0


def _find_lost_jobs(folder: SweepDir, runs: Sequence[RunDir]) -> None:
    """Record jobs whose submitter died; warn of those that Slurm may still take, and cancel the others."""
    try:
        settle_arrays(folder)
    except AnswerLost as lost:
        warn([str(lost)])
        return
    for run in runs:
        try:
            recover_lost(run)
        except RunBusy as error:
            warn([str(error)])


def _resume(arguments: Namespace) -> int:
    folder, record = _named(arguments)
    if not arguments.dry_run:
        check_sweep(folder)
    known, live, warnings = to_resume(folder, record)
    warn(warnings)
    runs = [one for one in known if not one.skipped]
    here = "sweeps train here, one run after the other"
    cluster = choose(arguments.cluster, *(one.run for one in runs), sweep=folder, otherwise=here)
    handed = SubmittedRuns()
    warn(renew_code(known, asked=arguments.new_code, cluster=cluster, dry_run=arguments.dry_run))
    if runs and not arguments.dry_run:
        handed = start_runs(folder, record, runs, live, cluster, arguments)
    if arguments.json:
        later = [one.run.run_id for one in handed.later]
        jobs = {run.run_id: job.job_id for run, job in handed.jobs.items()}
        resumed = [one.run.run_id for one in runs if one.run.run_id not in later]
        print(json.dumps({"sweep": folder.name, "resumed": resumed, "jobs": jobs, "later": later}))
    elif arguments.dry_run:
        for one in runs:
            print(f"{one.run.run_id}  {one.now.state if one.now else 'waits'}")
    elif runs or not warnings:
        print_submitted(folder, runs, handed, cluster)
    return handed.code


def _report(arguments: Namespace) -> int:
    from slurm.status.table import console_for_tables
    from slurm.sweeps.overview import overview
    from toolkit.sweeps.results.collect import read_results, to_json
    from toolkit.sweeps.results.report import write_report
    from toolkit.sweeps.results.tables import drawn

    folder, record = _named(arguments)
    found = overview(folder, record)
    results = read_results(folder, record, found.states, metric=arguments.metric, goal=arguments.goal)
    if results.declared is not None and results.declared.goal != results.goal:
        better = "less" if results.goal == "max" else "more"
        warn([f"{better} {results.metric} is better, but the runs are ranked by the goal {results.goal}"])
    page = written(lambda: write_report(folder, results))
    if arguments.json:
        warn(filter(None, [results.lacking]))
        print(json_text(to_json(results)))
    else:
        console_for_tables().print(drawn(results))
        if page is not None:
            print(f"report  {page}")
    return 0


ACTIONS = {"status": _status, "cancel": _cancel, "resume": _resume, "report": _report}


def _named(arguments: Namespace) -> tuple[SweepDir, Record]:
    """Return the named sweep, or the only one if no name is given. Raises UserError."""
    parent = experiment_dir()
    names = list(dict.fromkeys(filter(None, [*arguments.overrides, arguments.name])))
    if keys := [name for name in names if "=" in name]:
        raise UserError(
            f"found {', '.join(keys)}, but status, cancel, resume and report take no keys: `stk sweep FILE` "
            "with them submits the unfinished runs"
        )
    if len(names) > 1:
        raise UserError(f"one sweep at a time: found {', '.join(names)}")
    there = sorted(each.name for each in find_sweeps(parent))
    if not names and len(there) != 1:
        raise UserError(f"which sweep? Under {parent} there are: {', '.join(there) or 'none'}")
    folder = find_sweep(names[0] if names else there[0], parent)
    record = read_record(folder)
    if record is None:
        raise UserError(f"{folder.path} is not the folder of a sweep")
    if not names:
        print(f"sweep {folder.name}", file=sys.stderr)
    return folder, record


def start_runs(
    folder: SweepDir,
    record: Record,
    runs: Sequence[Candidate],
    live: Sequence[str],
    cluster: str,
    arguments: Namespace,
) -> SubmittedRuns:
    """Submit runs to Slurm, or train them here one after the other: as many as the options allow."""
    if cluster == "local":
        return _train(runs, arguments)
    limits = {"max_parallel": arguments.max_parallel, "at_most": arguments.at_most}
    with _bar(len(runs), quiet=arguments.json) as tick:
        return start(folder, record, runs, live, **limits, tick=tick)


@contextmanager
def _bar(runs: int, *, quiet: bool) -> Iterator[Callable[[], None]]:
    """Show a progress bar while folders are made; yield a function to call for each folder.

    Only on a terminal and for many runs.
    """
    if quiet or runs < _MANY or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("making the folders of the runs", total=runs)
        yield lambda: progress.advance(task)


def _train(wanted: Sequence[Candidate], arguments: Namespace) -> SubmittedRuns:
    """Train the runs here; the result has the highest exit code. Ctrl-C ends all of them."""
    count = min(len(wanted), arguments.at_most or len(wanted))
    done = SubmittedRuns(later=list(wanted[count:]), why=f"--at-most is {count}")
    for number, one in enumerate(wanted[:count], start=1):
        print(f"{number} of {count}: {one.run.run_id}, folder {one.run.path}", file=sys.stderr)
        if _is_left_out(one):
            continue
        code = _train_one(one, quiet=arguments.json)
        # Another command may have started it since.
        if code == ExitCode.WRONG_INPUT and _is_left_out(one):
            continue
        done.code = max(done.code, code)
        if code == ExitCode.INTERRUPTED:
            done.later, done.why = list(wanted[number:]), "interrupted"
            break
    return done


def _is_left_out(one: Candidate) -> bool:
    """Whether a run has finished or is live, which is printed."""
    skipped = replace(one, now=states([one.run]).get(one.run)).skipped
    if skipped:
        print(f"left out: {skipped}", file=sys.stderr)
    return bool(skipped)


def _train_one(one: Candidate, *, quiet: bool) -> int:
    from toolkit.launch.launcher import launch

    is_new = fill_run(one.run, one.experiment)
    made = one.run.path.stat()
    environ = scrub()
    nodes = Nodes(Machines.alone(local_processes(one.experiment, environ)))
    code = launch(one.run, environ, nodes, quiet=quiet)
    if code:
        explain(one.run, code, quiet=quiet)
    if code == ExitCode.WRONG_INPUT and is_new:
        # The error was shown; the folder has nothing else.
        take_away(one.run, made)
    return code


def print_submitted(
    folder: SweepDir, wanted: Sequence[Candidate], handed: SubmittedRuns, cluster: str
) -> None:
    if not wanted:
        print("nothing to do: every run has finished or is live")
        return
    later = {each.run for each in handed.later}
    for one in wanted:
        if cluster == "slurm" and one.run not in handed.jobs and one.run not in later:
            print(f"left out: {one.run.run_id} {ELSEWHERE}")
    for job_id in handed.arrays:
        size = sum(job.job_id.partition("_")[0] == job_id for job in handed.jobs.values())
        print(f"job     {job_id}, an array; runs: {size}")
    if later:
        print(f"later   runs not started yet: {len(later)} ({handed.why.splitlines()[0]})")
        here, when = ("", ", when others have ended") if cluster == "slurm" else (" --cluster local", " here")
        print(f"        stk sweep resume {folder.name}{here} starts more{when}")
    if cluster != "slurm":
        print(f"report  stk sweep report {folder.name}")
    elif handed.arrays:
        print(f"follow  stk sweep status {folder.name}    stk watch")
