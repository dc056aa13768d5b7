"""The kinds of benchmarks, and the metrics of each."""

from __future__ import annotations

from collections.abc import Mapping

from toolkit.workload import Metric, shares

_F1 = shares(f1="F1", precision="Precision", recall="Recall")
_LINE_F1 = shares(sequence_f1="Mean F1 of a line")
_MNED = Metric(name="mned", goal="min", title="Mean normalised edit distance", unit="number")

#: Metrics by kind, the main one first.
KINDS: Mapping[str, tuple[Metric, ...]] = {
    "sed_words": (
        *_F1,
        *shares(
            word_accuracy="Word accuracy",
            real_word_rate="Real-word errors found",
            non_word_rate="Non-word errors found",
        ),
    ),
    "sed_sequence": (*_F1, *shares(sequence_accuracy="Sequence accuracy")),
    "sec": (*shares(f1="Correction F1"), *_F1[1:], *_LINE_F1, _MNED),
    "tokenization_repair": (*_F1, *_LINE_F1, *shares(sequence_accuracy="Sequence accuracy")),
}
#: Metrics that a terminal shows, by kind.
HEADLINES: Mapping[str, tuple[str, ...]] = {
    "sed_words": ("f1", "word_accuracy"),
    "sed_sequence": ("f1", "sequence_accuracy"),
    "sec": ("f1", "mned"),
    "tokenization_repair": ("f1", "sequence_f1"),
}
#: Titles of the kinds.
TITLES: Mapping[str, str] = {
    "sed_words": "Errors in words",
    "sed_sequence": "Lines with errors",
    "sec": "Corrections",
    "tokenization_repair": "Repair of white space",
}


def shown(metric: Metric, value: float) -> str:
    """Format a value: shares in per cent with two digits, other numbers with four."""
    return f"{100 * value:.2f}" if metric.unit == "share" else f"{value:.4f}"
