"""Which tasks and models there are: names, parameters, and where the code is.

The code is named, not imported, so that checking an experiment imports no torch. A new task is a
row here, its parameter dataclasses in a module beside this one, one module and one YAML file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.config.kinds.entities import (
    BiEncoder,
    CoMention,
    EntityDisambiguation,
    EntityMentions,
    slice_metrics,
)
from toolkit.config.kinds.spelling import (
    OWN_TEXTS,
    SedSequence,
    SedWords,
    SpellingTexts,
    WhitespaceRepair,
    WhitespaceRepairPlus,
    detection_rates,
    plus_metrics,
)
from toolkit.config.kinds.spelling_correction import SecNmt, SecWordsNmt
from toolkit.config.kinds.spelling_models import (
    CorrectionNMT,
    CorrectionWordsNMT,
    DetectionGraph,
    DetectionTransformer,
    TokenizationRepair,
    TokenizationRepairPlus,
)
from toolkit.config.kinds.text import DocNN, Pretrained, TextClassification, TextTable

__all__ = [
    "TASKS",
    "BiEncoder",
    "CoMention",
    "CorrectionNMT",
    "CorrectionWordsNMT",
    "DetectionGraph",
    "DetectionTransformer",
    "DocNN",
    "EntityDisambiguation",
    "EntityMentions",
    "Pretrained",
    "SecNmt",
    "SecWordsNmt",
    "SedSequence",
    "SedWords",
    "SpellingTexts",
    "TaskKind",
    "TextClassification",
    "TextTable",
    "TokenizationRepair",
    "TokenizationRepairPlus",
    "WhitespaceRepair",
    "WhitespaceRepairPlus",
    "kind_of",
    "metric_names",
]


def _none(data: Any) -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskKind:
    """One row of the table.

    parameters     dataclass of the `task` section
    data           dataclass of the `data` section
    models         model kinds that the task takes: name -> (dataclass of the `model` section, code)
    code           "module:attribute" of the task's class
    metrics        metrics of an evaluation, which `evaluation.metric` may name
    data_metrics   those that the data section adds
    file_keys      keys of the data section that another file, which is only scored, may need otherwise
    own_files      keys of the data section that name the run's own files beside `path`; null for another
    """

    parameters: type
    data: type
    models: Mapping[str, tuple[type, str]]
    code: str
    metrics: tuple[str, ...]
    file_keys: tuple[str, ...]
    data_metrics: Callable[[Any], Sequence[str]] = _none
    own_files: tuple[str, ...] = ("train", "validation", "test")


#: Keys of the data section of spelling that another file may need otherwise.
_SPELLING_FILE_KEYS = ("noise", "noise_seed", "max_length", "workers", "prepared_dir")
_DETECTION_MODELS: Mapping[str, tuple[type, str]] = {
    "transformer": (DetectionTransformer, "toolkit.models.spelling.detection:DetectionTransformer"),
    "graph": (DetectionGraph, "toolkit.models.spelling.graph_network:DetectionGraph"),
}
#: Of what is written while the target is read; the test set adds those of what is written without it.
_CORRECTION_METRICS = ("loss", "token_accuracy", "sequence_accuracy")

TASKS: Mapping[str, TaskKind] = {
    "text_classification": TaskKind(
        parameters=TextClassification,
        data=TextTable,
        models={
            "docnn": (DocNN, "toolkit.models.docnn:DocNN"),
            "pretrained": (Pretrained, "toolkit.models.pretrained:Pretrained"),
        },
        code="toolkit.tasks.text_classification:TextClassificationTask",
        metrics=(
            "loss",
            "accuracy",
            "macro_precision",
            "macro_recall",
            "macro_f1",
            "weighted_f1",
            "mcc",
            "text_accuracy",
            "text_macro_f1",
        ),
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
    "entity_disambiguation": TaskKind(
        parameters=EntityDisambiguation,
        data=EntityMentions,
        models={
            "bi_encoder": (BiEncoder, "toolkit.models.bi_encoder:BiEncoder"),
            "co_mention": (CoMention, "toolkit.models.co_mention:CoMention"),
        },
        code="toolkit.tasks.entity_disambiguation:EntityDisambiguationTask",
        metrics=("loss", "accuracy", "popularity"),
        file_keys=("entity_db", "eval_slices", "slices", "torso_above", "head_above", "prepared_dir"),
        data_metrics=slice_metrics,
    ),
    "sed_words": TaskKind(
        parameters=SedWords,
        data=SpellingTexts,
        models=_DETECTION_MODELS,
        code="toolkit.tasks.sed_words:SedWordsTask",
        metrics=("loss", "f1", "precision", "recall", "word_accuracy"),
        file_keys=_SPELLING_FILE_KEYS,
        data_metrics=detection_rates,
        own_files=OWN_TEXTS,
    ),
    "sed_sequence": TaskKind(
        parameters=SedSequence,
        data=SpellingTexts,
        models=_DETECTION_MODELS,
        code="toolkit.tasks.sed_sequence:SedSequenceTask",
        metrics=("loss", "f1", "precision", "recall", "accuracy"),
        file_keys=_SPELLING_FILE_KEYS,
        own_files=OWN_TEXTS,
    ),
    "sec_nmt": TaskKind(
        parameters=SecNmt,
        data=SpellingTexts,
        models={"nmt": (CorrectionNMT, "toolkit.models.spelling.correction:CorrectionNMT")},
        code="toolkit.tasks.sec_nmt:SecNmtTask",
        metrics=_CORRECTION_METRICS,
        file_keys=_SPELLING_FILE_KEYS,
        own_files=OWN_TEXTS,
    ),
    "sec_words_nmt": TaskKind(
        parameters=SecWordsNmt,
        data=SpellingTexts,
        models={
            "words_nmt": (CorrectionWordsNMT, "toolkit.models.spelling.words_correction:CorrectionWordsNMT"),
        },
        code="toolkit.tasks.sec_words_nmt:SecWordsNmtTask",
        metrics=_CORRECTION_METRICS,
        file_keys=_SPELLING_FILE_KEYS,
        own_files=OWN_TEXTS,
    ),
    "tokenization_repair": TaskKind(
        parameters=WhitespaceRepair,
        data=SpellingTexts,
        models={
            "tokenization_repair": (TokenizationRepair, "toolkit.models.spelling.repair:TokenizationRepair"),
        },
        code="toolkit.tasks.tokenization_repair:TokenizationRepairTask",
        metrics=("loss", "f1", "precision", "recall", "sequence_f1", "sequence_accuracy"),
        file_keys=_SPELLING_FILE_KEYS,
        own_files=OWN_TEXTS,
    ),
    "tokenization_repair_plus": TaskKind(
        parameters=WhitespaceRepairPlus,
        data=SpellingTexts,
        models={
            "tokenization_repair_plus": (
                TokenizationRepairPlus,
                "toolkit.models.spelling.repair_plus:TokenizationRepairPlus",
            ),
        },
        code="toolkit.tasks.tokenization_repair_plus:TokenizationRepairPlusTask",
        metrics=("loss", "f1", "precision", "recall", "word_accuracy", "repair_f1"),
        file_keys=_SPELLING_FILE_KEYS,
        data_metrics=plus_metrics,
        own_files=OWN_TEXTS,
    ),
}


def kind_of(task: Any) -> TaskKind:
    """The table's row of a checked task section."""
    return TASKS[task.kind]


def metric_names(task: Any, data: Any) -> tuple[str, ...]:
    """All metrics of an evaluation of checked sections."""
    row = kind_of(task)
    return (*row.metrics, *row.data_metrics(data))
