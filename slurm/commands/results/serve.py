"""stk serve"""

from __future__ import annotations

import json
import os
from argparse import Namespace

from slurm.commands.run_snapshot import processes
from toolkit.analysis.prediction.request import check_predicts
from toolkit.run.run_dir import find_run

_MODULE = "toolkit.analysis.prediction.serve"


def run(arguments: Namespace) -> int:
    """Serve a finished run: replace this process by one with torch and the run's own code."""
    target = find_run(arguments.run)
    check_predicts(target)
    service = {"host": arguments.host, "port": arguments.port, "batch_size": arguments.batch_size}
    ((command, environment),) = processes(target, _MODULE, json.dumps(service))
    os.execve(command[0], command, environment)
