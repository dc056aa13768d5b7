"""Entity disambiguation as a workload."""

from __future__ import annotations

from toolkit.workload import LOSS, TaskSpec, Workload, shares
from toolkit.workloads.entity_disambiguation import rules
from toolkit.workloads.entity_disambiguation.config import (
    ACCURACY,
    BiEncoder,
    CoMention,
    EntityDisambiguation,
    EntityMentions,
    slice_metrics,
)

_PACKAGE = "toolkit.workloads.entity_disambiguation"

WORKLOAD = Workload(
    name="entity_disambiguation",
    packages=(_PACKAGE,),
    commands={"entities": f"{_PACKAGE}.commands.entities_options:ENTITIES"},
    evaluate=f"{_PACKAGE}.commands.entities_options:EVALUATE",
    tasks=(
        TaskSpec(
            kind="entity_disambiguation",
            config=EntityDisambiguation,
            data=EntityMentions,
            models={
                "bi_encoder": (BiEncoder, f"{_PACKAGE}.models.bi_encoder:BiEncoder"),
                "co_mention": (CoMention, f"{_PACKAGE}.models.co_mention:CoMention"),
            },
            task=f"{_PACKAGE}.task:EntityDisambiguationTask",
            metrics=(LOSS, ACCURACY, *shares("popularity")),
            brief=("accuracy",),
            predictor=f"{_PACKAGE}.inference.predictor:DisambiguationPredictor",
            kept_artifacts=(
                "encoding",
                "encoding.json",
                "entity_db",
                "entity_encoder",
                "gold_counts.json",
                "model",
            ),
            report=f"{_PACKAGE}.report.sections:SlicesReport",
            data_metrics=slice_metrics,
            metric_keys=("data.eval_slices",),
            rules=rules.RULES,
            file_keys=("entity_db", "eval_slices", "slices", "torso_above", "head_above", "prepared_dir"),
        ),
    ),
)
