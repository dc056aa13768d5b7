"""stk export"""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from slurm.commands.common import warn
from slurm.runs.cleaning.choosing import size
from toolkit.analysis.export import export_run
from toolkit.run.run_dir import find_run
from toolkit.system.output import amounts


def run(arguments: Namespace) -> int:
    target = find_run(arguments.run)
    made = export_run(target, Path(os.path.expanduser(arguments.folder)))
    if not made.code.exists():
        warn([f"{target.code} is gone: {arguments.folder} has no code of its own"])
    print(f"wrote  {arguments.folder}, {amounts.size(size(made.path))} of {amounts.size(size(target.path))}")
    return 0
