"""stk cancel"""

from __future__ import annotations

from argparse import Namespace

from slurm.runs.cancel_requeue import cancel
from slurm.status.rows import status
from toolkit.run.run_dir import find_run


def run(arguments: Namespace) -> int:
    """End live runs."""
    for target in [find_run(name) for name in arguments.runs]:
        (now,) = status([target])
        print(f"{target.run_id}: {cancel(target, now)}")
    return 0
