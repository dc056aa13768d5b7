"""stk predict"""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from dataclasses import asdict

from slurm.commands.run_snapshot import absolute, processes
from toolkit.analysis.prediction.request import MODULE, Request, check_predicts, input_format, output_format
from toolkit.config.schema import Experiment
from toolkit.errors import UserError
from toolkit.registry import task_kinds
from toolkit.run.run_dir import find_run


def run(arguments: Namespace) -> int:
    """Predict with a finished run: replace this process by one with torch and the run's own code."""
    target = find_run(arguments.run)
    request = _request(arguments, check_predicts(target))
    ((command, environment),) = processes(target, MODULE, json.dumps(asdict(request)))
    sys.stdout.flush()
    # execve, so that signals, pipes and the exit code are those of the new program.
    os.execve(command[0], command, environment)


def _request(arguments: Namespace, experiment: Experiment) -> Request:
    """Return the request. Raises UserError if a file is missing, or cannot be written."""
    file, output = absolute(arguments.file), absolute(arguments.output)
    read_as = arguments.input_format or input_format(file, getattr(experiment.data, "delimiter", None))
    if file is not None and not os.path.exists(file):
        raise UserError(f"there is no file {arguments.file}")
    if output is not None and os.path.isdir(output):
        raise UserError(f"{arguments.output} is a folder, expected the name of a file")
    if output is not None and not os.access(os.path.dirname(output), os.W_OK):
        raise UserError(f"cannot write {arguments.output}: its folder does not exist, or is not writable")
    # Another link to the rows may be replaced: they keep their own name. A device may be both.
    if (
        file is not None
        and output is not None
        and os.path.isfile(output)
        and _place(output) == os.path.realpath(file)
    ):
        raise UserError(
            f"{arguments.output} is the file with the rows: predictions would replace its columns. "
            "Give another name"
        )
    return Request(
        file=file,
        input=read_as,
        output=output,
        format=output_format(
            output,
            read_as,
            given=arguments.format,
            varied=task_kinds()[experiment.task.kind].varied_predictions,
        ),
        batch_size=arguments.batch_size,
    )


def _place(output: str) -> str:
    """Return the name that a file is renamed to: links to its folder are followed, one of its name is not."""
    folder, name = os.path.split(output)
    return os.path.join(os.path.realpath(folder), name)
