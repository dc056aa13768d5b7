"""stk cancel"""

from __future__ import annotations

import os
import signal
from argparse import Namespace

from slurm import controller
from slurm.status.rows import is_launcher_alive, status
from slurm.submissions import last_submission
from toolkit.create import experiment_dir
from toolkit.errors import UserError
from toolkit.rundir import RunDir, find_run


def run(arguments: Namespace) -> int:
    """End live runs."""
    parent = experiment_dir()
    for target in [find_run(name, parent) for name in arguments.runs]:
        print(f"{target.run_id}: {_cancel(target)}")
    return 0


def _cancel(target: RunDir) -> str:
    (now,) = status([target])
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
