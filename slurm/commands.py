"""What each command does. Takes parsed arguments, prints, returns an exit code."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from slurm import controller
from slurm.plan import JobPlan
from slurm.status import is_launcher_alive
from slurm.status import status as status_of
from slurm.submissions import last_submission, submissions
from slurm.submit import Submitted, choose_cluster, local_processes, put_aside, refuse_if_live
from slurm.submit import submit as submit_run
from slurm.topology import how_started, scrub, world_from_step
from toolkit.config import load, load_resolved, load_resources, run_id
from toolkit.config.schema import Experiment, Resources
from toolkit.create import create_run, experiment_dir
from toolkit.data.glance import glance
from toolkit.errors import RunNotFound, SlurmUnavailable, UserError
from toolkit.files import read_json
from toolkit.rundir import RunDir, find_run, find_runs
from toolkit.world import World

_POLL_S = 0.5
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("", "0", "false", "no", "off")


def plan(arguments: Namespace) -> int:
    """stk plan"""
    experiment = load(Path(arguments.config), arguments.overrides)
    run = RunDir(experiment_dir() / run_id(experiment))
    job = JobPlan(
        experiment=experiment, resources=experiment.resources, run=run, number=len(submissions(run))
    )
    facts = job.to_json()
    if arguments.test_only:
        facts["test_only"] = answer = _test_only(job)
        print(answer, file=sys.stderr)
    print(json.dumps(facts, ensure_ascii=False) if arguments.json else job.describe())
    return 0


def _test_only(job: JobPlan) -> str:
    from slurm.preflight import preflight

    preflight(job.resources)
    return controller.test_only(str(job))


def submit(arguments: Namespace) -> int:
    """stk submit"""
    experiment = load(Path(arguments.config), arguments.overrides)
    target = RunDir(experiment_dir() / run_id(experiment))
    cluster = _choose(arguments.cluster, target)
    if arguments.fresh or not target.result.exists():
        glance(experiment)
    submitted = submit_run(experiment, target.path.parent, cluster, fresh=arguments.fresh)
    return _tell(submitted, arguments.json)


def resume(arguments: Namespace) -> int:
    """stk resume"""
    run = find_run(arguments.run, experiment_dir())
    experiment = _stored_experiment(run)
    cluster = _choose(arguments.cluster, run)
    submitted = submit_run(experiment, run.path.parent, cluster, resources=_last_resources(run, experiment))
    return _tell(submitted, arguments.json)


def _stored_experiment(run: RunDir) -> Experiment:
    """The experiment in a run's folder. Raises UserError where the folder has another one's name."""
    experiment = load_resolved(run.config)
    if run_id(experiment) != run.run_id:
        raise UserError(
            f"the folder {run.path} holds the run {run_id(experiment)}: give it this name to go on with it"
        )
    return experiment


def _choose(wanted: str, target: RunDir) -> str:
    cluster = choose_cluster(wanted)
    if wanted == "auto" and cluster == "local":
        _refuse_what_slurm_may_have(target)
        if not target.result.exists():
            print("No Slurm controller answers here: training in local processes.", file=sys.stderr)
    return cluster


def _refuse_what_slurm_may_have(target: RunDir) -> None:
    """Raise SlurmUnavailable where a job of the run may wait or run, unseen from here."""
    last = last_submission(target)
    is_of_slurm = target.intent.exists() or (last is not None and last.cluster == "slurm")
    if is_of_slurm and not target.result.exists():
        job = f" as job {last.job_id}" if last else ""
        raise SlurmUnavailable(
            f"{target.run_id} was handed to Slurm{job}, and no controller answers, so it may wait or run "
            "there. Try again later; if that job is gone, use --cluster local"
        )


def _last_resources(run: RunDir, experiment: Experiment) -> Resources:
    """The resources of the last submission; of a run that never was submitted, its config's."""
    return load_resources(run.job, experiment) if run.job.exists() else experiment.resources


def _tell(submitted: Submitted, as_json: bool) -> int:
    run, submission = submitted.run, submitted.submission
    if as_json:
        print(json.dumps(submitted.to_json(), ensure_ascii=False))
    elif submission is None:
        print(f"{run.run_id} has finished already: stk report {run.run_id} (--fresh starts anew)")
    else:
        where = f"job {submission.job_id}" if submission.cluster == "slurm" else "local processes"
        print(f"run     {run.run_id}\njob     {where}\nfolder  {run.path}")
        print(f"follow  stk logs -f {run.run_id}    stk status {run.run_id}")
    return 0


def run(arguments: Namespace) -> int:
    """stk run"""
    experiment, parent = _experiment_or_run(arguments)
    world = _world_of_this_process(os.environ)
    if world is not None:
        return _run_as_rank(experiment, parent, world)
    return _run_here(experiment, parent, arguments)


def _experiment_or_run(arguments: Namespace) -> tuple[Experiment, Path]:
    """The experiment and where its run lies: composed from a file, or that of an existing run."""
    parent = experiment_dir()
    path = Path(arguments.config)
    if path.is_file() or (path.suffix in (".yaml", ".yml") and not path.is_dir()):
        return load(path, arguments.overrides), parent
    found = find_run(arguments.config, parent)
    if arguments.overrides:
        raise UserError(f"{found.run_id} goes on with its own config: give no {arguments.overrides[0]}")
    return _stored_experiment(found), found.path.parent


def _world_of_this_process(environ: Mapping[str, str]) -> World | None:
    """The world that a launcher around us describes; None where we start the processes ourselves."""
    if is_forced_local(environ):
        return None
    if "RANK" in environ and "WORLD_SIZE" in environ:
        return World.from_environment(environ)
    return world_from_step(environ) if how_started(environ) == "rank" else None


def is_forced_local(environ: Mapping[str, str]) -> bool:
    """Whether STK_FORCE_LOCAL says so, in any usual spelling. Raises UserError for another word."""
    word = environ.get("STK_FORCE_LOCAL", "").strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise UserError(f"STK_FORCE_LOCAL is {word!r}: use one of {', '.join(_TRUE)} or {', '.join(_FALSE[1:])}")


def _run_as_rank(experiment: Experiment, parent: Path, world: World) -> int:
    # Deferred, because only a rank needs torch; the ranks of a job stop like those of `stk submit`.
    from slurm.job import run_rank

    code = run_rank(create_run(experiment, parent), world)
    return 130 if code else 0


def _run_here(experiment: Experiment, parent: Path, arguments: Namespace) -> int:
    from toolkit.launch import launch

    target = RunDir(parent / run_id(experiment))
    procs = local_processes(experiment.resources) if arguments.procs is None else arguments.procs
    _check_processes(procs, experiment)
    if target.result.exists() and not arguments.fresh:
        print(f"{target.run_id} has finished already (--fresh starts anew)", file=sys.stderr)
        return _show_result(target, arguments.json)
    existed = _make_room(target, experiment, fresh=arguments.fresh)
    create_run(experiment, parent)
    print(f"{target.run_id}: {procs} local processes, folder {target.path}", file=sys.stderr)
    code = launch(target, procs, environ=scrub(), quiet=arguments.json)
    if code == 0:
        return _show_result(target, arguments.json)
    _explain(target, code, quiet=arguments.json)
    if code == UserError.exit_code and not existed and not target.attempts.exists():
        # Nothing came of it, and what was wrong has been told.
        shutil.rmtree(target.path, ignore_errors=True)
    return code


def _make_room(target: RunDir, experiment: Experiment, *, fresh: bool) -> bool:
    """See that the run can start; return whether its folder is there. Raises DataError, RunBusy."""
    glance(experiment)
    if fresh and target.path.exists():
        put_aside(target)
    elif target.path.exists():
        refuse_if_live(target)
    return target.path.exists()


def _check_processes(procs: int, experiment: Experiment) -> None:
    if not 1 <= procs <= experiment.train.logical_ranks:
        raise UserError(
            f"--procs is {procs}: it must be from 1 to train.logical_ranks, {experiment.train.logical_ranks}"
        )


def _show_result(target: RunDir, as_json: bool) -> int:
    if as_json:
        (row,) = status_of([target])
        print(json.dumps(row.to_json(), ensure_ascii=False))
    else:
        _render([target])
        print(f"report  {target.report_html}")
    return 0


def _explain(target: RunDir, code: int, *, quiet: bool) -> None:
    """After a run that did not finish: what failed, or how to go on.

    What rank 0 could not write into failure.json it has told by itself, unless quiet.
    """
    failure = read_json(target.failure)
    if code == 130:
        print(f"interrupted; `stk resume {target.run_id}` or the same command goes on", file=sys.stderr)
    elif failure is not None:
        print(_failure_text(failure), file=sys.stderr)
    elif code != UserError.exit_code or quiet:
        print(f"error: the run failed; stk logs {target.run_id}", file=sys.stderr)


def _failure_text(failure: dict[str, Any]) -> str:
    place = f"rank {failure['rank']} on {failure['host']}, in {failure['phase']}, at step {failure['step']}"
    return f"error: {failure['message']}\n  where   {place}\n  what to do   {failure['advice']}"


def status(arguments: Namespace) -> int:
    """stk status"""
    parent = experiment_dir()
    runs = [find_run(name, parent) for name in arguments.runs] or list(find_runs(parent))
    rows = status_of(runs)
    if arguments.json:
        print(json.dumps([row.to_json() for row in rows], ensure_ascii=False))
    elif rows:
        from slurm.status_table import show

        show(rows)
    else:
        print(f"no runs under {parent}")
    return 0


def logs(arguments: Namespace) -> int:
    """stk logs"""
    target = find_run(arguments.run, experiment_dir())
    failure = read_json(target.failure)
    if failure is not None:
        print(_failure_text(failure) + "\n")
    path = _newest_log(target, arguments.rank)
    if path is None and not arguments.follow:
        raise RunNotFound(f"{target.run_id} has no log of rank {arguments.rank} yet in {target.logs}")
    for text in _follow(target, arguments.rank) if arguments.follow else [_read(path)]:
        print(text, end="", flush=True)
    return 0


def _newest_log(target: RunDir, rank: int) -> Path | None:
    found = target.logs.glob(f"*.rank_{rank:05d}.log") if target.logs.is_dir() else iter(())
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def _read(path: Path | None) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path else ""


def _follow(target: RunDir, rank: int) -> Iterator[str]:
    """What the newest log gets, across restarts, until the run is no longer live."""
    current, position = None, 0
    while True:
        is_live = status_of([target])[0].is_live
        newest = _newest_log(target, rank)
        if newest != current:
            current, position = newest, 0
        if current is not None:
            with open(current, encoding="utf-8", errors="replace") as stream:
                stream.seek(position)
                yield stream.read()
                position = stream.tell()
        if not is_live:
            return
        time.sleep(_POLL_S)


def report(arguments: Namespace) -> int:
    """stk report"""
    from toolkit.report import summarize, to_json, write_comparison, write_report

    parent = experiment_dir()
    runs = [find_run(name, parent) for name in arguments.runs]
    pages = [write_report(each) for each in runs]
    if len(runs) > 1 and arguments.output:
        pages = [write_comparison(runs, Path(arguments.output))]
    if arguments.json:
        print(json.dumps([to_json(summarize(each)) for each in runs], ensure_ascii=False))
    else:
        _render(runs)
        for page in pages:
            print(f"report  {page}")
    return 0


def _render(runs: list[RunDir]) -> None:
    from rich.console import Console

    from toolkit.report import render, summarize

    render([summarize(each) for each in runs], Console())


def cancel(arguments: Namespace) -> int:
    """stk cancel"""
    parent = experiment_dir()
    for target in [find_run(name, parent) for name in arguments.runs]:
        print(f"{target.run_id}: {_cancel(target)}")
    return 0


def _cancel(target: RunDir) -> str:
    (now,) = status_of([target])
    submission = last_submission(target)
    if not now.is_live:
        return f"not live ({now.state}), nothing to cancel"
    if submission is None:
        raise UserError(f"{target.run_id} runs in the foreground of some terminal: press Ctrl-C there")
    if submission.cluster == "slurm":
        controller.cancel(submission.job_id)
        return f"job {submission.job_id} cancelled"
    if not is_launcher_alive(submission):
        raise UserError(f"{target.run_id} was started on {submission.host}: cancel it there")
    os.kill(submission.pid, signal.SIGTERM)
    return "asked to save and leave"


def prepare(arguments: Namespace) -> int:
    """stk prepare"""
    from toolkit.launch import prepare as prepare_data

    # Checked here, so that a fault is told in the same words as everywhere.
    load(Path(arguments.config), arguments.overrides)
    # Tasks belong to the worker's world: a process of its own keeps torch out of this one.
    return prepare_data(arguments.config, arguments.overrides, scrub())


__all__ = ["cancel", "logs", "plan", "prepare", "report", "resume", "run", "status", "submit"]
