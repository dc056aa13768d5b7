"""stk resume"""

from __future__ import annotations

import os
from argparse import Namespace
from dataclasses import replace

from slurm.commands.common import warn
from slurm.commands.experiments.submit import choose, print_submitted
from slurm.config.rank_count import earlier_processes
from slurm.status.submissions import last_resources
from slurm.submission.submit import submit
from toolkit.precheck.changes import change_warnings
from toolkit.run.create_run import stored_experiment
from toolkit.run.events import FORCED, note_event
from toolkit.run.run_dir import find_run


def run(arguments: Namespace) -> int:
    """Continue a run that has ended, with its own config, code and last resources."""
    target = find_run(arguments.run)
    experiment = stored_experiment(target)
    if arguments.force and not target.result.exists():
        note_event(target, FORCED, steps=target.checkpoint_steps())
    cluster = choose(arguments.cluster, target)
    edits = change_warnings(target, experiment, new_code=arguments.new_code)
    experiment = replace(experiment, resources=last_resources(target))
    procs = earlier_processes(target, experiment, os.environ)
    submitted = submit(experiment, target, cluster, new_code=arguments.new_code, procs=procs)
    warn(edits)
    return print_submitted(submitted, arguments.json)
