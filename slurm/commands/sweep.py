"""stk sweep"""

from __future__ import annotations

import json
import shutil
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

from slurm.commands.run import explain, has_trained
from slurm.commands.submit import refuse_what_slurm_may_have
from slurm.status.rows import status
from slurm.submissions import Submission
from slurm.submit import choose_cluster, local_processes
from slurm.sweeps.combinations import Combination, combine
from slurm.sweeps.sweep import Candidate, candidates, submit_array
from slurm.sweeps.table import show
from slurm.topology import scrub
from toolkit.create import create_run, experiment_dir
from toolkit.data.glance import glance
from toolkit.errors import UserError
from toolkit.machines.crew import Crew
from toolkit.machines.layout import Machines
from toolkit.rundir import RunDir

_INTERRUPTED = 130
_ELSEWHERE = "was started by another command"


def run(arguments: Namespace) -> int:
    """Submit every combination of values as one job array, or train them here one after the other."""
    combinations = combine(Path(arguments.config), arguments.overrides)
    parent = experiment_dir()
    known = candidates([each.experiment for each in combinations], parent)
    wanted = [one for one in known if not one.skipped]
    _glance(wanted)
    cluster = _choose(arguments.cluster, wanted)
    if not arguments.json:
        show(combinations, known)
    jobs: Mapping[RunDir, Submission] = {}
    code = 0
    if wanted and not arguments.dry_run:
        if cluster == "slurm":
            jobs = submit_array(wanted, parent, arguments.max_parallel)
        else:
            code = _train(wanted, quiet=arguments.json)
    if arguments.json:
        print(json.dumps(_answer(cluster, combinations, known, jobs), ensure_ascii=False))
    elif not arguments.dry_run:
        _tell(known, wanted, jobs, cluster)
    return code


def _glance(wanted: Sequence[Candidate]) -> None:
    """Look at the data files of each kind of data section once. Raises DataError."""
    seen = set()
    for one in wanted:
        key = repr((one.experiment.data, one.experiment.model))
        if key not in seen:
            glance(one.experiment)
            seen.add(key)


def _choose(wanted: str, runs: Sequence[Candidate]) -> str:
    """slurm or local; says so where auto falls back to local processes."""
    cluster = choose_cluster(wanted)
    if wanted == "auto" and cluster == "local":
        for one in runs:
            refuse_what_slurm_may_have(one.run)
        print("No Slurm controller answers here: training here, one run after the other.", file=sys.stderr)
    return cluster


def _train(wanted: Sequence[Candidate], *, quiet: bool) -> int:
    """Train the runs one after the other; the exit code of the worst. Ctrl-C ends them all."""
    worst = 0
    for number, one in enumerate(wanted, start=1):
        print(f"{number} of {len(wanted)}: {one.run.run_id}, folder {one.run.path}", file=sys.stderr)
        code = _train_one(one, quiet=quiet)
        if code == _INTERRUPTED:
            return code
        worst = max(worst, code)
    return worst


def _train_one(one: Candidate, *, quiet: bool) -> int:
    from toolkit.launch import launch

    existed = one.run.path.exists()
    create_run(one.experiment, one.run.path.parent)
    crew = Crew(Machines.alone(local_processes(one.experiment.resources)))
    code = launch(one.run, scrub(), crew, quiet=quiet)
    if code:
        explain(one.run, code, quiet=quiet)
    if code == UserError.exit_code and not existed and not has_trained(one.run):
        # Nothing came of it, and what was wrong has been told.
        shutil.rmtree(one.run.path, ignore_errors=True)
    return code


def _answer(
    cluster: str,
    combinations: Sequence[Combination],
    known: Sequence[Candidate],
    jobs: Mapping[RunDir, Submission],
) -> dict[str, object]:
    """What --json prints: a line for each run, and the array's own id."""
    values = {each.run_id: each.values for each in reversed(combinations)}
    rows = zip(known, status([one.run for one in known]), strict=True)
    first = next(iter(jobs.values()), None)
    return {
        "job_id": first.job_id.partition("_")[0] if first else None,
        "cluster": cluster,
        "runs": [
            {
                "run_id": one.run.run_id,
                "run_dir": str(one.run.path),
                "job_id": jobs[one.run].job_id if one.run in jobs else now.job_id,
                "state": now.state if one.run.path.exists() else None,
                "values": dict(values[one.run.run_id]),
                # Between the first look and the lock somebody else may have started it.
                "skipped": one.skipped or (_ELSEWHERE if jobs and one.run not in jobs else None),
            }
            for one, now in rows
        ],
    }


def _tell(
    known: Sequence[Candidate], wanted: Sequence[Candidate], jobs: Mapping[RunDir, Submission], cluster: str
) -> None:
    """Say what came of it, and how to follow it."""
    for one in known:
        if one.skipped:
            print(f"left out: {one.run.run_id} {one.skipped}")
    if not wanted:
        print("nothing to do: every run has finished or is live")
    elif cluster == "slurm":
        for one in wanted:
            if one.run not in jobs:
                print(f"left out: {one.run.run_id} {_ELSEWHERE}")
        ids = [each.job_id.partition("_")[0] for each in jobs.values()]
        if ids:
            print(f"job     {ids[0]}, an array of {len(jobs)} runs")
            print("follow  stk watch    stk status")
