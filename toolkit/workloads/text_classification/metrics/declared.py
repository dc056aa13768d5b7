"""The metrics of text classification: goals, titles and units. Imports no torch."""

from __future__ import annotations

from toolkit.workload import LOSS, Metric, shares

#: Metrics of every evaluation.
METRICS = (
    LOSS,
    *shares("accuracy", "macro_precision", "macro_recall", macro_f1="macro F1", weighted_f1="weighted F1"),
    Metric(name="mcc", goal="max", title="Matthews correlation", unit="number"),
    Metric(name="text_accuracy", goal="max", twin="accuracy"),
    Metric(name="text_macro_f1", goal="max", title="text macro F1", twin="macro_f1"),
)
#: Metrics of classes and curves in a report.
REPORT_METRICS = (
    *shares("precision", "recall", "weighted_precision", "weighted_recall", f1="F1"),
    Metric(name="average_precision", goal="max", unit="number"),
    Metric(name="roc_auc", goal="max", title="ROC AUC", unit="number"),
)
BY_NAME = {each.name: each for each in (*METRICS, *REPORT_METRICS)}
