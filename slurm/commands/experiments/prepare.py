"""stk prepare"""

from __future__ import annotations

import sys
from argparse import Namespace
from functools import partial
from pathlib import Path

from rich.console import Console

from slurm.commands.experiments.submit import choose
from slurm.job.preparation import prepare_data, prepare_model
from slurm.submission.prepare_job import PreparationJob, submit_preparation
from toolkit.config import load_with_origins
from toolkit.errors import UserError
from toolkit.precheck.check_inputs import check_data
from toolkit.reliability.early_signals import interrupt_on_request
from toolkit.run.run_dir import experiment_dir
from toolkit.system.output.json_text import json_text
from toolkit.training.output.progress_display import BarDisplay, LogDisplay, is_on_terminal
from toolkit.workload import NoData


def run(arguments: Namespace) -> int:
    """Build the prepared data of an experiment, here or in a job."""
    experiment, origins = load_with_origins(Path(arguments.config), arguments.overrides)
    check_data(experiment, origins)
    is_needed = not isinstance(experiment.data, NoData) or experiment.model.needs_preparation
    if is_needed and choose(arguments.cluster, otherwise="preparing on this machine") == "slurm":
        job = submit_preparation(experiment, experiment_dir(), arguments.cpus)
        print(json_text(job.to_json()) if arguments.json else _submission_text(job))
        return 0
    if is_needed and arguments.cpus is not None:
        raise UserError("--cpus is only for a job: add --cluster slurm, or leave it out")
    interrupt_on_request()
    console = Console(stderr=True)
    lines = LogDisplay(partial(print, file=sys.stderr, flush=True))
    display = BarDisplay(console) if is_on_terminal(console) else lines
    try:
        prepared = prepare_data(experiment, display.preparing)
    finally:
        display.stop()
    if code := prepare_model(experiment, arguments.config, *arguments.overrides):
        return code
    print(json_text(prepared.to_json()) if arguments.json else prepared.summary())
    return 0


def _submission_text(job: PreparationJob) -> str:
    """Return the result of a submission, and how to follow it."""
    state = "" if job.is_new else f" ({job.state}, submitted before)"
    return (
        f"job     {job.submission.job_id}{state}\nlog     {job.log}\n"
        f"follow  stk logs -f {job.folder.path}    stk status {job.folder.path}"
    )
