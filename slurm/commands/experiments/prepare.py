"""stk prepare"""

from __future__ import annotations

import sys
from argparse import Namespace
from functools import partial
from pathlib import Path

from rich.console import Console

from slurm.commands.experiments.submit import choose
from slurm.job.preparation import prepare_data, prepare_model
from slurm.submission.prepare_job import submit_preparation
from slurm.submission.submit import Submitted
from toolkit.config import load_with_origins
from toolkit.errors import UserError
from toolkit.precheck.check_inputs import check_data
from toolkit.reliability.early_signals import interrupt_on_request
from toolkit.system.output.json_text import json_text
from toolkit.training.output.progress_display import BarDisplay, LogDisplay, is_on_terminal
from toolkit.workload import NoData


def run(arguments: Namespace) -> int:
    experiment, origins = load_with_origins(Path(arguments.config), arguments.overrides)
    check_data(experiment, origins)
    is_needed = not isinstance(experiment.data, NoData) or experiment.model.needs_preparation
    if is_needed and choose(arguments.cluster, otherwise="preparing on this machine") == "slurm":
        _print_submitted(submit_preparation(experiment, arguments.cpus), arguments.json)
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


def _print_submitted(submitted: Submitted, as_json: bool) -> None:
    folder, submission, joined = submitted.run, submitted.submission, submitted.joined
    assert submission is not None
    job_id, log = submission.job_id, folder.log(submission.job_id, 0)
    if as_json:
        state = {"cluster": submission.cluster, "state": joined or "pending"}
        print(json_text({"job_id": job_id, **state, "log": str(log), "folder": str(folder.path)}))
        return
    before = f" ({joined}, submitted before)" if joined else ""
    print(f"job     {job_id}{before}\nlog     {log}")
    print(f"follow  stk logs -f {folder.path}    stk status {folder.path}")
