"""What the package registers."""

from __future__ import annotations

from stk_toy.sections import RULES, Line, PointsData, PointsTask
from stk_toy.texts import sections as texts
from toolkit.workload import LOSS, Metric, TaskSpec, Workload, shares

WORKLOAD = Workload(
    name="toy",
    packages=("stk_toy",),
    commands={"line": "stk_toy.commands:LINE"},
    evaluate="stk_toy.commands:EVALUATE",
    example="stk_toy.texts.example:write_example",
    tasks=(
        TaskSpec(
            kind="toy_points",
            config=PointsTask,
            data=PointsData,
            models={"line": (Line, "stk_toy.task:LineModel")},
            task="stk_toy.task:PointsTask",
            metrics=(LOSS, Metric(name="distance", goal="min", title="Mean distance", unit="number")),
            report="stk_toy.report:PointsReport",
            predictor="stk_toy.predictor:PointsPredictor",
            rules=RULES,
            file_keys=("prepared_dir",),
            own_files=(),
        ),
        TaskSpec(
            kind="toy_texts",
            config=texts.TextsTask,
            data=texts.TextsData,
            models={"convolutions": (texts.Convolutions, "stk_toy.texts.model:Convolutions")},
            task="stk_toy.texts.task:TextsTask",
            metrics=(LOSS, *shares("accuracy", "macro_precision", "macro_recall", macro_f1="macro F1")),
            brief=("accuracy", "macro_f1"),
            report="stk_toy.texts.report:TextsReport",
            rules=texts.RULES,
            file_keys=(
                "delimiter",
                "columns",
                "text_column",
                "label_column",
                "unknown_labels",
                "prepared_dir",
            ),
        ),
    ),
)
