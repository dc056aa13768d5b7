"""stk status"""

from __future__ import annotations

import json
from argparse import Namespace

from slurm.status.rows import status
from toolkit.create import experiment_dir
from toolkit.rundir import find_run, find_runs


def run(arguments: Namespace) -> int:
    """Show where runs stand."""
    parent = experiment_dir()
    runs = [find_run(name, parent) for name in arguments.runs] or list(find_runs(parent))
    rows = status(runs)
    if arguments.json:
        print(json.dumps([row.to_json() for row in rows], ensure_ascii=False))
    elif rows:
        from slurm.status.table import show

        show(rows)
    else:
        print(f"no runs under {parent}")
    return 0
