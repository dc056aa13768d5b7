"""stk submit"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path

from slurm.budget import budgets_of_request, measured_lead_s, too_short
from slurm.submissions import last_resources, last_submission
from slurm.submit import Submitted, choose_cluster, submit
from toolkit.config import load, run_id
from toolkit.create import experiment_dir
from toolkit.data.glance import glance
from toolkit.errors import SchedulerError, SlurmUnavailable
from toolkit.rundir import RunDir


def run(arguments: Namespace) -> int:
    """Hand an experiment to Slurm, or to processes on this machine."""
    experiment = load(Path(arguments.config), arguments.overrides)
    target = RunDir(experiment_dir() / run_id(experiment))
    cluster = choose(arguments.cluster, target)
    if arguments.fresh or not target.result.exists():
        glance(experiment)
    submitted = submit(experiment, target.path.parent, cluster, fresh=arguments.fresh)
    return tell(submitted, arguments.json)


def choose(wanted: str, target: RunDir) -> str:
    """slurm or local; says so where auto falls back to local processes."""
    cluster = choose_cluster(wanted)
    if wanted == "auto" and cluster == "local":
        refuse_what_slurm_may_have(target)
        if not target.result.exists():
            print("No Slurm controller answers here: training in local processes.", file=sys.stderr)
    return cluster


def refuse_what_slurm_may_have(target: RunDir) -> None:
    """Raise SlurmUnavailable where a job of the run may wait or run, unseen from here."""
    last = last_submission(target)
    is_of_slurm = target.intent.exists() or (last is not None and last.cluster == "slurm")
    if is_of_slurm and not target.result.exists():
        job = f" as job {last.job_id}" if last else ""
        raise SlurmUnavailable(
            f"{target.run_id} was handed to Slurm{job}, and no controller answers, so it may wait or run "
            "there. Try again later; if that job is gone, use --cluster local"
        )


def tell(submitted: Submitted, as_json: bool) -> int:
    """Say what came of a submission, and how to follow it."""
    run, submission = submitted.run, submitted.submission
    if submission is not None and submission.cluster == "slurm":
        for line in _warnings(run):
            print(f"warning: {line}", file=sys.stderr)
    if as_json:
        print(json.dumps(submitted.to_json(), ensure_ascii=False))
    elif submission is None:
        print(f"{run.run_id} has finished already: stk report {run.run_id} (--fresh starts anew)")
    else:
        where = f"job {submission.job_id}" if submission.cluster == "slurm" else "local processes"
        print(f"run     {run.run_id}\njob     {where}\nfolder  {run.path}")
        print(f"follow  stk logs -f {run.run_id}    stk status {run.run_id}")
    return 0


def _warnings(run: RunDir) -> list[str]:
    """What earlier starts measured that does not fit into the time that this cluster gives for a save."""
    lead_s = measured_lead_s(run)
    if lead_s is None:
        return []
    try:
        return too_short(lead_s, budgets_of_request(last_resources(run)))
    except SchedulerError:
        return []
