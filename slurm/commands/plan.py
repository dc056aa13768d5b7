"""stk plan"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path

from slurm.plan import JobPlan
from slurm.submissions import submissions
from toolkit.config import load, run_id
from toolkit.config.kinds import SpellingTexts
from toolkit.config.schema import Experiment
from toolkit.create import experiment_dir
from toolkit.data.named_files import check_named_files
from toolkit.errors import DataError
from toolkit.rundir import RunDir


def run(arguments: Namespace) -> int:
    """Print the resolved experiment and the batch script."""
    experiment = load(Path(arguments.config), arguments.overrides)
    target = RunDir(experiment_dir() / run_id(experiment))
    job = JobPlan(
        experiment=experiment, resources=experiment.resources, run=target, number=len(submissions(target))
    )
    _warn_of_data(experiment)
    facts = job.to_json()
    if arguments.test_only:
        facts["test_only"] = answer = _test_only(job)
        print(answer, file=sys.stderr)
    print(json.dumps(facts, ensure_ascii=False) if arguments.json else job.describe())
    return 0


def _warn_of_data(experiment: Experiment) -> None:
    """Say what submitting would refuse: a plan may be made where the data are not."""
    if isinstance(experiment.data, SpellingTexts):
        try:
            check_named_files(experiment.data)
        except DataError as error:
            print(f"warning: {error}", file=sys.stderr)


def _test_only(job: JobPlan) -> str:
    # Only this asks Slurm anything.
    from slurm import controller
    from slurm.preflight import preflight

    preflight(job.resources)
    return controller.test_only(str(job))
