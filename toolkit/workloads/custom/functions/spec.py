"""The task kind of three functions, as the workload registers it."""

from __future__ import annotations

from toolkit.workload import LOSS, TaskSpec
from toolkit.workloads.custom.functions.prediction.fault import prediction_fault
from toolkit.workloads.custom.functions.sections import (
    KIND,
    MODEL_KIND,
    AnyData,
    AnyModel,
    FunctionsTask,
    from_text,
    kept_files,
    metrics_of,
    own_sections,
)

SPEC = TaskSpec(
    kind=KIND,
    config=FunctionsTask,
    data=AnyData,
    models={MODEL_KIND: (AnyModel, "")},
    task="toolkit.workloads.custom.functions.task:FunctionsTask",
    metrics=(LOSS,),
    task_metrics=metrics_of,
    metric_keys=("task",),
    report="toolkit.workloads.custom.functions.report.sections:FunctionReport",
    predictor="toolkit.workloads.custom.functions.prediction.predictor:FunctionsPredictor",
    prediction_fault=prediction_fault,
    own_files=(),
    from_text=from_text,
    own_sections=own_sections,
    kept_files=kept_files,
    makes=("optimizer", "lr_scheduler"),
    has_move=True,
)
