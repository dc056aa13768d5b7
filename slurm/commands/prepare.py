"""stk prepare"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path

from rich.console import Console

from slurm.preparing.job import PreparationJob, submit_preparation
from slurm.preparing.preparation import prepare_data, prepare_entities
from slurm.submit import choose_cluster
from toolkit.config import load
from toolkit.config.kinds import SpellingTexts
from toolkit.config.schema import Experiment
from toolkit.create import experiment_dir
from toolkit.data.glance import glance
from toolkit.data.named_files import check_named_files
from toolkit.display import Display, Live, Silent
from toolkit.errors import UserError


def run(arguments: Namespace) -> int:
    """Build the prepared data of an experiment, here or in a job."""
    experiment = load(Path(arguments.config), arguments.overrides)
    if _choose(arguments.cluster) == "slurm":
        glance(experiment)
        job = submit_preparation(experiment, experiment_dir(), arguments.cpus)
        print(json.dumps(job.to_json(), ensure_ascii=False) if arguments.json else _tell(job))
        return 0
    if arguments.cpus is not None:
        raise UserError(
            "--cpus is of a job (--cluster slurm); here, data.workers=N is the number of processes"
        )
    return _prepare_here(experiment, arguments)


def _choose(wanted: str) -> str:
    cluster = choose_cluster(wanted)
    if wanted == "auto" and cluster == "local":
        print("No Slurm controller answers here: preparing on this machine.", file=sys.stderr)
    return cluster


def _prepare_here(experiment: Experiment, arguments: Namespace) -> int:
    if isinstance(experiment.data, SpellingTexts):
        check_named_files(experiment.data)
    display = _display()
    try:
        prepared = prepare_data(experiment.data, display.preparing)
    finally:
        display.stop()
    if code := prepare_entities(experiment, arguments.config, *arguments.overrides):
        return code
    print(json.dumps(prepared.to_json(), ensure_ascii=False) if arguments.json else prepared.summary())
    return 0


def _tell(job: PreparationJob) -> str:
    """What came of a submission, and how to follow it."""
    state = "" if job.is_new else f" ({job.state}, submitted before)"
    return (
        f"job     {job.submission.job_id}{state}\nlog     {job.log}\n"
        f"follow  stk logs -f {job.folder.path}    stk status {job.folder.path}"
    )


def _display() -> Display:
    """A bar where somebody watches; not on standard output, which is for the answer."""
    console = Console(stderr=True)
    return Live(console) if console.is_terminal else Silent()
