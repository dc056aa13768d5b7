"""Whether more or less of `evaluation.metric` is better: the task declares it."""

from __future__ import annotations

from dataclasses import replace

from toolkit.config.schema import Experiment
from toolkit.registry import metrics_of

#: What the metrics of an experiment depend on.
METRIC_KEYS = (
    "task.kind",
    "evaluation.metric",
    "data.eval_slices",
    "data.dictionary",
    "data.output_tokenizer_path",
)


def with_goal(experiment: Experiment) -> Experiment:
    """The experiment with the goal that its task declares, where its metric stands alone."""
    name = experiment.evaluation.metric
    found = (each for each in metrics_of(experiment.task, experiment.data) if each.name == name)
    metric = next(found, None)
    if metric is None:
        return experiment
    return replace(experiment, evaluation=replace(experiment.evaluation, metric=metric.full_name))
