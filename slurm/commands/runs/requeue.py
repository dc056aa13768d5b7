"""stk requeue"""

from __future__ import annotations

from argparse import Namespace

from slurm.commands.common import do_each
from slurm.runs.cancel_requeue import requeue
from slurm.status.rows import status
from slurm.status.submissions import recover_lost
from toolkit.run.run_dir import RunDir, find_run


def run(arguments: Namespace) -> int:
    targets = [find_run(name) for name in arguments.runs]
    now = dict(zip(targets, status(targets), strict=True))

    def act(run: RunDir) -> str:
        if not run.intent.exists():
            return requeue(run, now[run])
        recover_lost(run)
        return requeue(run, *status([run]))

    return do_each(targets, act)
