"""stk cancel"""

from __future__ import annotations

from argparse import Namespace

from slurm.commands.common import do_each
from slurm.runs.cancel_requeue import find_and_cancel
from toolkit.run.run_dir import find_run


def run(arguments: Namespace) -> int:
    return do_each([find_run(name) for name in arguments.runs], find_and_cancel)
