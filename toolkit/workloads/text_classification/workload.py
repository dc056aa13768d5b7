"""Text classification as a workload."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.config.schema import Experiment
from toolkit.workload import TaskSpec, Violation, Workload
from toolkit.workloads.text_classification import rules
from toolkit.workloads.text_classification.config import DocNN, Pretrained, TextClassification, TextTable
from toolkit.workloads.text_classification.metrics.declared import METRICS, REPORT_METRICS

_PACKAGE = "toolkit.workloads.text_classification"


def _weight_violations(experiment: Experiment) -> Iterator[Violation]:
    from toolkit.workloads.text_classification.data.checks import weight_violations

    return weight_violations(experiment)


WORKLOAD = Workload(
    name="text_classification",
    packages=(_PACKAGE,),
    example=f"{_PACKAGE}.example:write_example",
    tasks=(
        TaskSpec(
            kind="text_classification",
            config=TextClassification,
            data=TextTable,
            models={
                "docnn": (DocNN, f"{_PACKAGE}.models.docnn:DocNN"),
                "pretrained": (Pretrained, f"{_PACKAGE}.models.pretrained:Pretrained"),
            },
            task=f"{_PACKAGE}.task:TextClassificationTask",
            metrics=METRICS,
            predictor=f"{_PACKAGE}.inference.predictor:ClassificationPredictor",
            kept_artifacts=("encoding.json", "encoding", "labels.json", "model"),
            report=f"{_PACKAGE}.report.sections:ClassificationReport",
            brief=("accuracy", "macro_f1"),
            more_metrics=REPORT_METRICS,
            rules=rules.RULES,
            file_check=_weight_violations,
            file_keys=(
                "delimiter",
                "quoted",
                "columns",
                "encoding",
                "text_column",
                "label_column",
                "unknown_labels",
                "prepared_dir",
            ),
        ),
    ),
)
