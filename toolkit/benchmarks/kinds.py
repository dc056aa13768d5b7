"""The kinds of benchmarks, and what is measured of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A number that tells how good predictions are.

    title         for people
    is_share      between 0 and 1, shown in per cent
    lower_is_best
    headline      shown wherever there is room for few
    """

    name: str
    title: str
    is_share: bool = True
    lower_is_best: bool = False
    headline: bool = False

    def shown(self, value: float) -> str:
        """Return the value with the digits that are customary: per cent with two, others with four."""
        return f"{100 * value:.2f}" if self.is_share else f"{value:.4f}"

    def best(self, values: Collection[float]) -> str:
        """Return the best of values as shown: what looks equal is equally good."""
        return self.shown(min(values) if self.lower_is_best else max(values))

    @property
    def unit(self) -> str:
        """What stands behind the title of a table."""
        return ", %" if self.is_share else ", lower is better" if self.lower_is_best else ""


_PRECISION = Metric(name="precision", title="Precision")
_RECALL = Metric(name="recall", title="Recall")
_F1 = Metric(name="f1", title="F1", headline=True)

#: Metrics by kind, the one that counts most first.
KINDS: Mapping[str, tuple[Metric, ...]] = {
    "sed_words": (
        _F1,
        _PRECISION,
        _RECALL,
        Metric(name="word_accuracy", title="Word accuracy", headline=True),
        Metric(name="real_word_rate", title="Real-word errors found"),
        Metric(name="non_word_rate", title="Non-word errors found"),
    ),
    "sed_sequence": (
        _F1,
        _PRECISION,
        _RECALL,
        Metric(name="sequence_accuracy", title="Sequence accuracy", headline=True),
    ),
    "sec": (
        Metric(name="f1", title="Correction F1", headline=True),
        _PRECISION,
        _RECALL,
        Metric(name="sequence_f1", title="Mean F1 of a line"),
        Metric(
            name="mned",
            title="Mean normalised edit distance",
            is_share=False,
            lower_is_best=True,
            headline=True,
        ),
    ),
    "tokenization_repair": (
        _F1,
        _PRECISION,
        _RECALL,
        Metric(name="sequence_f1", title="Mean F1 of a line", headline=True),
        Metric(name="sequence_accuracy", title="Sequence accuracy"),
    ),
}

#: What a kind is about, for people.
TITLES: Mapping[str, str] = {
    "sed_words": "Errors in words",
    "sed_sequence": "Lines with errors",
    "sec": "Corrections",
    "tokenization_repair": "Repair of white space",
}
