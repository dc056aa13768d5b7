"""stk cancel"""

from __future__ import annotations

from argparse import Namespace

from slurm.commands.common import do_each
from slurm.runs.cancel_requeue import cancel
from slurm.status.rows import status
from slurm.status.submissions import recover_lost
from toolkit.run.run_dir import RunDir, find_run


def run(arguments: Namespace) -> int:
    """Cancel live runs."""
    return do_each([find_run(name) for name in arguments.runs], _cancel)


def _cancel(run: RunDir) -> str:
    recover_lost(run)
    return cancel(run, *status([run]))
