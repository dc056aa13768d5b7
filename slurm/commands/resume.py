"""stk resume"""

from __future__ import annotations

from argparse import Namespace

from slurm.commands.submit import choose, tell
from slurm.submit import submit
from toolkit.config import load_resolved, load_resources, run_id
from toolkit.config.schema import Experiment, Resources
from toolkit.create import experiment_dir
from toolkit.errors import UserError
from toolkit.rundir import RunDir, find_run


def run(arguments: Namespace) -> int:
    """Put an ended run back to work, with its own config, code and last resources."""
    target = find_run(arguments.run, experiment_dir())
    experiment = stored_experiment(target)
    cluster = choose(arguments.cluster, target)
    submitted = submit(experiment, target.path.parent, cluster, resources=_last_resources(target, experiment))
    return tell(submitted, arguments.json)


def stored_experiment(run: RunDir) -> Experiment:
    """The experiment in a run's folder. Raises UserError where the folder has another one's name."""
    experiment = load_resolved(run.config)
    if run_id(experiment) != run.run_id:
        raise UserError(
            f"the folder {run.path} holds the run {run_id(experiment)}: give it this name to go on with it"
        )
    return experiment


def _last_resources(run: RunDir, experiment: Experiment) -> Resources:
    """The resources of the last submission; of a run that never was submitted, its config's."""
    return load_resources(run.job, experiment) if run.job.exists() else experiment.resources
