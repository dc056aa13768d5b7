"""Read the scores of slices, and make tables of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.report import formats
from toolkit.report.blocks import Numbers, Table, table
from toolkit.workloads.entity_disambiguation.config import ACCURACY, WHOLE_SLICE
from toolkit.workloads.entity_disambiguation.metrics.slice_score import SliceScore

#: Prefix of the metrics of slices in metrics.jsonl.
PREFIX = "accuracy/"
#: The shown name of the slice of all scored mentions.
ALL = "all mentions"


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceReport:
    """The slices of one split, first the slice of all mentions.

    no_candidate  whether the model has a class for mentions with a gold that is not a candidate
    """

    split: str
    no_candidate: bool
    scores: Mapping[str, SliceScore]

    @classmethod
    def of(cls, split: str, document: Mapping[str, Any]) -> SliceReport:
        """Read the content of `<split>_slices.json`. Raises LookupError, TypeError, ValueError."""
        rows = {str(row["name"]): row for row in document["slices"]}
        names = sorted(rows, key=lambda name: name != WHOLE_SLICE)
        counts = SliceScore.__slots__
        scores = {name: SliceScore(**{key: rows[name][key] + 0 for key in counts}) for name in names}
        return cls(split=split, no_candidate=bool(document.get("no_candidate")), scores=scores)

    def to_json(self) -> dict[str, Any]:
        scores = {name: each.to_json() for name, each in self.scores.items()}
        return {"split": self.split, "no_candidate": self.no_candidate, "scores": scores}

    @property
    def has_outside(self) -> bool:
        """Whether the gold of a mention is not a candidate: then there are two scores."""
        return any(each.mentions != each.mentions_not_nc for each in self.scores.values())


def title(name: str) -> str:
    """The shown name of a slice."""
    return ALL if name == WHOLE_SLICE else name


def numbers(scores: SliceScore, inside: bool) -> tuple[int, float | None, float | None]:
    """Return mentions, accuracy and popularity; the shares are None if there are no mentions."""
    if inside:
        found = scores.mentions_not_nc, scores.accuracy_not_nc, scores.popularity_not_nc
    else:
        found = scores.mentions, scores.accuracy, scores.popularity
    return found if found[0] else (0, None, None)


def slice_table(report: SliceReport, inside: bool) -> Table:
    """Return one row for each slice: mentions, accuracy, popularity, and the difference of the two."""
    rows = []
    for name, scores in report.scores.items():
        mentions, accuracy, popularity = numbers(scores, inside)
        shares = (formats.score(ACCURACY, value) for value in (accuracy, popularity))
        rows.append([title(name), formats.count(mentions), *shares, _points(accuracy, popularity)])
    head = ["slice", "mentions", "accuracy", "most popular", "difference"]
    which = f"{report.split}, gold among the candidates" if inside else report.split
    return table(f"Slices ({which})", head, rows, note=_note(report, inside))


def _note(report: SliceReport, inside: bool) -> str:
    """Describe the scoring of mentions with a gold that is not a candidate; empty without any."""
    if inside or not report.has_outside:
        return ""
    everything = report.scores[WHOLE_SLICE]
    outside = formats.count(everything.mentions - everything.mentions_not_nc)
    how = "right if the model predicts that" if report.no_candidate else "always wrong"
    return f"the gold of {outside} mentions is not a candidate: {how}"


def slice_numbers(report: SliceReport) -> Numbers:
    """Return counts and shares of each slice; not_nc: only mentions with a gold among the candidates."""
    rows = [[name, *scores.to_json().values()] for name, scores in report.scores.items()]
    return Numbers(name=f"slices_{report.split}", head=["slice", *SliceScore().to_json()], rows=rows)


def latest_table(split: str, scores: Mapping[str, float | None]) -> Table | None:
    """Return one row for each slice of the newest evaluation; None without metrics of slices."""
    found = {name: value for name, value in scores.items() if name.startswith(PREFIX)}
    rows = [[name.removeprefix(PREFIX), formats.score(ACCURACY, value)] for name, value in found.items()]
    return table("Slices (so far)", ["slice", f"{split} accuracy"], rows) if rows else None


def comparison_table(runs: Sequence[tuple[str, SliceReport]], split: str) -> Table:
    """Return one row for each slice, with the accuracy of each run.

    Mentions and popularity are shown only if they are equal in all runs.
    """
    rows = []
    for name in dict.fromkeys(name for _, report in runs for name in report.scores):
        found = [report.scores.get(name, SliceScore()) for _, report in runs]
        mentions = _agreed(each.mentions for each in found)
        popularity = formats.score(ACCURACY, _agreed(numbers(each, False)[2] for each in found))
        accuracies = (formats.score(ACCURACY, numbers(each, False)[1]) for each in found)
        rows.append([title(name), formats.count(mentions), popularity, *accuracies])
    head = ["slice", "mentions", "most popular", *(name for name, _ in runs)]
    return table(f"Slices ({split} accuracy)", head, rows)


def _agreed(values: Iterable[float | None]) -> float | None:
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _points(accuracy: float | None, popularity: float | None) -> str:
    """The difference of two shares in percentage points."""
    if accuracy is None or popularity is None:
        return formats.NOTHING
    return f"{100 * (accuracy - popularity):+.2f}"
