"""Published scores of real predictions are reproduced to the last digit: 34 figures.

Detection of words: F1 of ten predictions, precision and recall of two, accuracy of two. Correction: F1 and
edit distance of eight predictions, F1 of two more.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolkit.workloads.spelling.benchmarks.layout import find_benchmarks
from toolkit.workloads.spelling.benchmarks.scoring import Result, entries, score_entries
from toolkit.workloads.spelling.benchmarks.tables import tables

pytestmark = pytest.mark.skipif(
    "STK_REFERENCE_DATA" not in os.environ, reason="STK_REFERENCE_DATA names no folder"
)

WORDS = {
    "wikidump/realistic": {
        "baseline_ood": "76.64",
        "baseline_aspell": "76.41",
        "baseline_neuspell_bert": "89.49",
        "gnn_cliques_wfc": "95.33",
        "transformer": "95.61",
    },
    "neuspell/jfleg": {
        "baseline_ood": "87.48",
        "baseline_aspell": "86.60",
        "baseline_neuspell_bert": "88.37",
        "gnn_cliques_wfc": "88.23",
        "transformer": "87.40",
    },
}
CORRECTIONS = {
    "wikidump/realistic": {
        "baseline_dummy": ("0.01", "0.0550"),
        "baseline_neuspell_bert": ("57.67", "0.0445"),
        "transformer_sec_nmt": ("74.87", "0.0240"),
        "transformer_sec_words_nmt": ("73.59", "0.0239"),
    },
    "neuspell/jfleg": {
        "baseline_dummy": ("0.20", "0.0156"),
        "baseline_neuspell_bert": ("83.03", "0.0070"),
        "transformer_sec_nmt": ("85.92", "0.0048"),
        "transformer_sec_words_nmt": ("85.27", "0.0050"),
    },
}
#: Correction F1 on texts with spelling errors and wrong white space.
WHITESPACE = {
    "tokenization_repair_plus_sec": "85.90",
    "transformer_sec_with_tokenization_repair_nmt": "88.95",
}


def published(*parts: str) -> Path:
    return Path(os.environ["STK_REFERENCE_DATA"]).absolute().joinpath("spelling", *parts)


def shown(kind: str) -> dict[str, dict[str, dict[str, str]]]:
    """Score the predictions in the folder: values as in tables, by metric, benchmark and model."""
    found = list(score_entries(entries(find_benchmarks(published(kind)), {}, {})))
    made = tables([each for each in found if isinstance(each, Result)])
    return {
        metric.name: {
            column: {row[0]: row[place] for row in table.rows if row[place] != "–"}
            for place, column in enumerate(table.head[1:], start=1)
        }
        for metric, table in made
    }


def test_published_detection_scores_are_reproduced() -> None:
    found = shown("sed_words")
    assert found["f1"] == WORDS
    of = {name: values["wikidump/realistic"] for name, values in found.items()}
    assert (of["precision"]["gnn_cliques_wfc"], of["recall"]["gnn_cliques_wfc"]) == ("97.12", "93.60")
    assert (of["precision"]["transformer"], of["recall"]["transformer"]) == ("96.81", "94.45")
    assert (of["word_accuracy"]["transformer"], of["word_accuracy"]["gnn_cliques_wfc"]) == ("98.00", "97.89")


@pytest.mark.slow
def test_published_correction_scores_are_reproduced() -> None:
    found = shown("sec")
    both = {
        benchmark: {model: (f1, found["mned"][benchmark][model]) for model, f1 in models.items()}
        for benchmark, models in found["f1"].items()
    }
    assert {model: f1 for model, (f1, _) in both.pop("whitespace/high-high").items()} == WHITESPACE
    assert both == CORRECTIONS
