"""stk plan"""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from slurm.commands.common import warn
from slurm.submission.batch_script import JobPlan
from slurm.submission.checks.early_checks import check_before_queue
from slurm.submission.plan_text import plan_text
from slurm.submissions import submissions
from toolkit.config import load_with_origins
from toolkit.run.create_run import run_of
from toolkit.run.edited_code import told
from toolkit.system.json_text import json_text


def run(arguments: Namespace) -> int:
    """Print the resolved experiment and the batch script."""
    experiment, origins = load_with_origins(Path(arguments.config), arguments.overrides)
    target = run_of(experiment)
    job = JobPlan(
        experiment=experiment, resources=experiment.resources, run=target, number=len(submissions(target))
    )
    facts = job.to_json()
    if arguments.test_only:
        facts["test_only"] = answer = _test_only(job)
        print(answer, file=sys.stderr)
    print(json_text(facts) if arguments.json else plan_text(job, origins))
    warn(told(target, experiment, new_code=False))
    # Last: what the job would be is worth seeing where the data are not, too.
    warn(check_before_queue(experiment, origins, "slurm"))
    return 0


def _test_only(job: JobPlan) -> str:
    # Only this asks Slurm anything.
    from slurm.client import programs
    from slurm.submission.checks.preflight import preflight

    preflight(job.resources)
    return programs.test_only(str(job))
