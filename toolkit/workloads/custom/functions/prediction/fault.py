"""Whether a run of three functions can predict, from the source that it keeps. Does not import torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toolkit.run.run_dir import RunDir
from toolkit.workloads.custom.functions.project.places import locate
from toolkit.workloads.custom.functions.reading.problems import Unfit
from toolkit.workloads.custom.functions.reading.signatures import EXAMPLES, read_functions

PREDICT = "predict"


def prediction_fault(experiment: Any, folder: Path) -> str:
    """Return the reason why a run cannot predict; empty if its file has a function `predict`."""
    task = experiment.task
    try:
        path = locate(task.module, [task.code_folder], RunDir(folder).code)
        functions = read_functions(path, experiment.task.class_name)
    except (Unfit, OSError) as error:
        return f"the task {task.module} cannot be used: {error}"
    return "" if functions.may_have(PREDICT) else lacks_predict(path)


def lacks_predict(path: Path) -> str:
    """Return the message for a file without the function `predict`."""
    return (
        f"{path} has no function {PREDICT}: add it to your file, such as {EXAMPLES[PREDICT]!r}, and train "
        "again; a run keeps the file that it began with"
    )
