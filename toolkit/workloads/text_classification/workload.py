"""Text classification as a workload."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.config.schema import Experiment
from toolkit.workload import LOSS, Metric, TaskSpec, Violation, Workload, shares
from toolkit.workloads.text_classification import rules
from toolkit.workloads.text_classification.config import DocNN, Pretrained, TextClassification, TextTable

_PACKAGE = "toolkit.workloads.text_classification"

_METRICS = (
    LOSS,
    *shares("accuracy", "macro_precision", "macro_recall", macro_f1="macro F1", weighted_f1="weighted F1"),
    Metric(name="mcc", goal="max", title="Matthews correlation", unit="number"),
    Metric(name="text_accuracy", goal="max", twin="accuracy"),
    Metric(name="text_macro_f1", goal="max", title="text macro F1", twin="macro_f1"),
)
#: Of the curves and classes of a report.
_REPORT_METRICS = (
    *shares("precision", "recall", "weighted_precision", "weighted_recall", f1="F1"),
    Metric(name="average_precision", goal="max", unit="number"),
    Metric(name="roc_auc", goal="max", title="ROC AUC", unit="number"),
)


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
            metrics=_METRICS,
            predictor=f"{_PACKAGE}.inference.predictor:ClassificationPredictor",
            report=f"{_PACKAGE}.report.sections:ClassificationReport",
            brief=("accuracy", "macro_f1"),
            more_metrics=_REPORT_METRICS,
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
