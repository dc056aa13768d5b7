"""stk resume"""

from __future__ import annotations

from argparse import Namespace

from slurm.commands.submit import choose, tell
from slurm.submissions import last_resources
from slurm.submit import submit
from toolkit.config import load_resolved, run_id
from toolkit.config.schema import Experiment
from toolkit.create import experiment_dir
from toolkit.errors import UserError
from toolkit.events import FORCED, note_event
from toolkit.rundir import RunDir, find_run


def run(arguments: Namespace) -> int:
    """Put an ended run back to work, with its own config, code and last resources."""
    target = find_run(arguments.run, experiment_dir())
    experiment = stored_experiment(target)
    if arguments.force:
        note_event(target, FORCED, steps=target.checkpoint_steps())
    cluster = choose(arguments.cluster, target)
    submitted = submit(experiment, target.path.parent, cluster, resources=last_resources(target))
    return tell(submitted, arguments.json)


def stored_experiment(run: RunDir) -> Experiment:
    """The experiment in a run's folder. Raises UserError where the folder has another one's name."""
    experiment = load_resolved(run.config)
    if run_id(experiment) != run.run_id:
        raise UserError(
            f"the folder {run.path} holds the run {run_id(experiment)}: give it this name to go on with it"
        )
    return experiment
