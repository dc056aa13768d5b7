"""Users' own code, as a workload: three functions of a Python file, and any command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

from toolkit.workload import LOSS, TaskSpec, Violation, Workload
from toolkit.workloads.custom.command import config
from toolkit.workloads.custom.command.kept_files import kept_files, shared_outputs
from toolkit.workloads.custom.functions.project.kept_files import files_not_kept
from toolkit.workloads.custom.functions.project.kept_files import kept_files as kept_files_of_functions
from toolkit.workloads.custom.functions.project.missing_imports import missing_imports
from toolkit.workloads.custom.functions.project.places import locate
from toolkit.workloads.custom.functions.reading.problems import Unfit
from toolkit.workloads.custom.functions.reading.signatures import read_functions
from toolkit.workloads.custom.functions.sections import classes
from toolkit.workloads.custom.functions.sections.metrics import metrics_of, unknown_metrics
from toolkit.workloads.custom.functions.sections.own_sections import (
    doubtful_functions,
    from_text,
    own_sections,
)
from toolkit.workloads.custom.functions.user_code import prediction_fault

_PACKAGE = "toolkit.workloads.custom"


def _function_warnings(experiment: Any) -> Iterator[Violation]:
    """Find probable mistakes in the file of a task. Ends early if the file was broken since it was read."""
    task = experiment.task
    with suppress(Unfit, OSError):
        functions = read_functions(locate(task.module, [task.code_folder]), task.class_name)
        yield from files_not_kept(task.module, functions.path)
        yield from missing_imports(experiment, functions)
        yield from unknown_metrics(task, functions)
        yield from doubtful_functions(functions)


_FUNCTIONS = TaskSpec(
    kind=classes.KIND,
    config=classes.FunctionsTask,
    data=classes.AnyData,
    models={classes.MODEL_KIND: (classes.AnyModel, "")},
    task=f"{_PACKAGE}.functions.task:FunctionsTask",
    metrics=(LOSS,),
    task_metrics=metrics_of,
    metric_keys=("task",),
    report=f"{_PACKAGE}.functions.own_report:FunctionReport",
    predictor=f"{_PACKAGE}.functions.prediction.predictor:FunctionsPredictor",
    prediction_fault=prediction_fault,
    own_files=(),
    file_warnings=_function_warnings,
    from_text=from_text,
    own_sections=own_sections,
    kept_files=kept_files_of_functions,
    makes=("optimizer", "lr_scheduler"),
    has_move=True,
)


_COMMAND = TaskSpec(
    kind="command",
    config=config.Command,
    experiment=config.CommandExperiment,
    worker=f"{_PACKAGE}.command.worker:run_attempt",
    rules=config.RULES,
    file_check=config.missing_script,
    file_warnings=lambda whole: chain(config.missing_program(whole), shared_outputs(whole)),
    prediction_fault=lambda experiment, folder: (
        "a command trains no model that is known here. Let your own program predict"
    ),
    kept_files=kept_files,
)

WORKLOAD = Workload(
    name="custom",
    packages=(_PACKAGE,),
    tasks=(_FUNCTIONS, _COMMAND),
    commands={"init": f"{_PACKAGE}.commands.init:INIT"},
    of_words=f"{_PACKAGE}.command.words:experiment_of",
    of_function=f"{_PACKAGE}.calling.from_function:experiment_of",
)
