"""The workload for detection and correction of spelling errors, and repair of white space."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolkit.workload import LOSS, Metric, TaskSpec, Violation, Workload, shares
from toolkit.workloads.spelling.config.data import OWN_TEXTS, SpellingTexts
from toolkit.workloads.spelling.config.models import (
    CorrectionNMT,
    CorrectionWordsNMT,
    DetectionGraph,
    DetectionTransformer,
    TokenizationRepair,
    TokenizationRepairPlus,
)
from toolkit.workloads.spelling.config.rules import RULES
from toolkit.workloads.spelling.config.tasks import (
    DETECTION_RATES,
    WRITTEN_TOKENS,
    SecNmt,
    SecWordsNmt,
    SedSequence,
    SedWords,
    WhitespaceRepair,
    WhitespaceRepairPlus,
    detection_rates,
    plus_metrics,
)
from toolkit.workloads.spelling.files import REPAIR_EXPERIMENT

_PACKAGE = "toolkit.workloads.spelling"

_F1 = shares(f1="F1")
_WORD_DETECTION = (LOSS, *_F1, *shares("precision", "recall", "word_accuracy"))
#: Metrics with teacher forcing; the test set adds the metrics of decoded texts.
_CORRECTION = (LOSS, *shares("token_accuracy", "sequence_accuracy"))
_WRITTEN = (
    *shares(correction_f1="correction F1"),
    *shares("precision", "recall"),
    Metric(name="mned", goal="min", title="MNED", unit="number"),
)


def _model(section: type, module: str) -> tuple[type, str]:
    """Return the section of a model, and its code; the class has the same name."""
    return section, f"{_PACKAGE}.models.{module}:{section.__name__}"


_DETECTION_MODELS = {
    "transformer": _model(DetectionTransformer, "detection"),
    "graph": _model(DetectionGraph, "graph_network"),
}


def _task(
    config: type,
    code: str,
    models: Mapping[str, tuple[type, str]],
    metrics: tuple[Metric, ...],
    brief: tuple[str, ...],
    **more: Any,
) -> TaskSpec:
    """Return a task on texts with errors.

    code   "folder.module:Class" of the task in `tasks/`
    more   further fields of TaskSpec
    """
    return TaskSpec(
        kind=config().kind,
        config=config,
        data=SpellingTexts,
        models=models,
        task=f"{_PACKAGE}.tasks.{code}",
        metrics=metrics,
        brief=brief,
        rules=RULES,
        predictor=f"{_PACKAGE}.inference.predictor:SpellingPredictor",
        kept_artifacts=("encoding", REPAIR_EXPERIMENT),
        file_keys=("noise", "noise_seed", "max_length", "workers", "prepared_dir"),
        own_files=OWN_TEXTS,
        **more,
    )


_SED_WORDS = _task(
    SedWords,
    "detection:SedWordsTask",
    _DETECTION_MODELS,
    _WORD_DETECTION,
    ("f1", "word_accuracy"),
    data_metrics=detection_rates,
    metric_keys=("data.dictionary",),
    more_metrics=DETECTION_RATES,
    varied_predictions=True,
)
_SED_SEQUENCE = _task(
    SedSequence,
    "detection:SedSequenceTask",
    _DETECTION_MODELS,
    (LOSS, *_F1, *shares("precision", "recall", "accuracy")),
    ("f1", "accuracy"),
)
_CORRECTIONS = tuple(
    _task(config, code, models, _CORRECTION, ("token_accuracy", "sequence_accuracy"), more_metrics=_WRITTEN)
    for config, code, models in (
        (SecNmt, "correction.sec_nmt:SecNmtTask", {"nmt": _model(CorrectionNMT, "correction")}),
        (
            SecWordsNmt,
            "correction.sec_words_nmt:SecWordsNmtTask",
            {"words_nmt": _model(CorrectionWordsNMT, "correction")},
        ),
    )
)


def _character_violations(experiment: Any) -> Iterator[Violation]:
    from toolkit.workloads.spelling.data.samples.checks import character_violations

    return character_violations(experiment)


_REPAIR = _task(
    WhitespaceRepair,
    "repair.tokenization_repair:TokenizationRepairTask",
    {"tokenization_repair": _model(TokenizationRepair, "repair")},
    (LOSS, *_F1, *shares("precision", "recall", "sequence_accuracy", sequence_f1="sequence F1")),
    ("f1", "sequence_accuracy"),
    file_check=_character_violations,
)
_REPAIR_PLUS = _task(
    WhitespaceRepairPlus,
    "repair.tokenization_repair_plus:TokenizationRepairPlusTask",
    {"tokenization_repair_plus": _model(TokenizationRepairPlus, "repair_plus")},
    (*_WORD_DETECTION, *shares(repair_f1="repair F1")),
    ("f1", "word_accuracy"),
    data_metrics=plus_metrics,
    metric_keys=("data.dictionary", "data.output_tokenizer_path"),
    more_metrics=(*DETECTION_RATES, *WRITTEN_TOKENS, *_WRITTEN),
    varied_predictions=True,
    file_check=_character_violations,
)

WORKLOAD = Workload(
    name="spelling",
    packages=(_PACKAGE,),
    commands={
        "detect": f"{_PACKAGE}.commands.use:DETECT",
        "correct": f"{_PACKAGE}.commands.use:CORRECT",
        "spelling": f"{_PACKAGE}.commands.spelling_options:SPELLING",
    },
    evaluate=f"{_PACKAGE}.commands.evaluate:EVALUATE",
    tasks=(_SED_WORDS, _SED_SEQUENCE, *_CORRECTIONS, _REPAIR, _REPAIR_PLUS),
)
