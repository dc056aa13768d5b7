"""`stk detect` and `stk correct`: this process becomes one that has torch."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from typing import NoReturn

from slurm import own_code
from toolkit.create import experiment_dir
from toolkit.errors import UserError
from toolkit.rundir import RunDir, find_run
from toolkit.spelling_use.abilities import check_use
from toolkit.spelling_use.requests import Job, Request

_MODULE = "toolkit.spelling_use"


def found_run(arguments: Namespace, tasks: tuple[str, ...], otherwise: str) -> RunDir:
    """The finished run that is named, of one of these tasks. Raises UserError.

    otherwise  what a run of another task fails to do, for the message
    """
    run = find_run(arguments.run, experiment_dir())
    check_use(run, tasks, otherwise)
    if arguments.batch_tokens is not None and arguments.batch_tokens < 1:
        raise UserError(f"--batch-tokens is {arguments.batch_tokens}: it must be at least 1")
    if arguments.file is not None and not os.path.exists(arguments.file):
        raise UserError(f"there is no file {arguments.file}")
    return run


def job(arguments: Namespace, form: str, *, detections: str | None = None, detected: bool = False) -> Job:
    """What is to be read and written."""
    return Job(
        input=arguments.file, output=arguments.output, form=form, detections=detections, detected=detected
    )


def become(run: RunDir, request: Request) -> NoReturn:
    """Go on as the process that does it: signals, pipes and the exit code are its own."""
    command = own_code.command(_MODULE, run, json.dumps(request.to_json()))
    (environment,) = own_code.environments(_MODULE, run)
    sys.stdout.flush()
    os.execve(command[0], command, environment)
