"""The figures published for real predictions, to the last digit shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolkit.benchmarks.layout import find_benchmarks
from toolkit.benchmarks.scoring import Result, entries, score_entries
from toolkit.benchmarks.tables import tables

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
#: Of texts with spelling errors and broken white space; the score is that of corrections.
WHITESPACE = {
    "tokenization_repair_plus_sec": "85.90",
    "transformer_sec_with_tokenization_repair_nmt": "88.95",
}


def shown(kind: str) -> dict[str, dict[str, dict[str, str]]]:
    """Score what lies in the folder: metric, benchmark, model, value as shown in tables."""
    folder = Path(os.environ["STK_REFERENCE_DATA"]).absolute() / "spelling" / kind
    found = list(score_entries(entries(find_benchmarks(folder), {})))
    made = tables([each for each in found if isinstance(each, Result)])
    return {
        table.metric.name: {
            column: {model: cells[place].text for model, cells in table.rows if cells[place].text}
            for place, column in enumerate(table.columns)
        }
        for table in made
    }


def test_errors_found_in_words() -> None:
    found = shown("sed_words")
    assert found["f1"] == WORDS
    of = {name: values["wikidump/realistic"] for name, values in found.items()}
    assert (of["precision"]["gnn_cliques_wfc"], of["recall"]["gnn_cliques_wfc"]) == ("97.12", "93.60")
    assert (of["precision"]["transformer"], of["recall"]["transformer"]) == ("96.81", "94.45")
    assert (of["word_accuracy"]["transformer"], of["word_accuracy"]["gnn_cliques_wfc"]) == ("98.00", "97.89")


def test_corrections() -> None:
    found = shown("sec")
    both = {
        benchmark: {model: (f1, found["mned"][benchmark][model]) for model, f1 in models.items()}
        for benchmark, models in found["f1"].items()
    }
    assert {model: f1 for model, (f1, _) in both.pop("whitespace/high-high").items()} == WHITESPACE
    assert both == CORRECTIONS
