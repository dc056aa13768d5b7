"""Warnings about a table: labels that look alike, splits that lack a label, texts in two splits.

Warnings do not stop a run. Imports nothing slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolkit.workloads.text_classification.data.sources.formats.wording import short, shown

#: Texts that other programs write for a missing value.
_MISSING = frozenset({"nan", "null", "none", "n/a", "na", "<na>", "nil"})


def notable(
    labels: Sequence[str], counts: Mapping[str, Sequence[int]], shared: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the unusual properties of a table, as in the manifest.

    counts   number of texts of each label, by split
    shared   texts in two splits: {splits, texts: number of different texts, places: files and lines of one}
    """
    absent = {
        split: [short(label) for label, count in zip(labels, of_label, strict=True) if not count]
        for split, of_label in counts.items()
    }
    return {
        "alike_labels": [[short(label) for label in group] for group in alike(labels)],
        "absent_labels": {split: missing for split, missing in absent.items() if missing},
        "shared_texts": list(shared),
        "only_label": short(labels[0]) if len(labels) == 1 else None,
        "missing_labels": [short(label) for label in labels if label.strip().casefold() in _MISSING],
    }


def alike(labels: Iterable[str]) -> list[tuple[str, ...]]:
    """Return groups of labels that differ only in case and blanks, or are the same number."""
    groups: dict[str, list[str]] = {}
    for label in labels:
        groups.setdefault(_plain(label), []).append(label)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def _plain(label: str) -> str:
    text = "".join(label.casefold().split())
    try:
        return repr(float(text)) if text.isascii() and "_" not in text else text
    except ValueError:
        return text


def describe_notable(found: Mapping[str, Any]) -> list[str]:
    """Describe the result of `notable`, one line for each finding. Old manifests have no findings."""
    lines = [
        f"labels that differ only by case, blanks or number format are separate classes: "
        f"{', '.join(map(repr, group))}"
        for group in found.get("alike_labels", ())
    ]
    if (only := found.get("only_label")) is not None:
        lines.append(f"there is only one label, {only!r}: nothing can be learnt, and every score is perfect")
    for label in found.get("missing_labels", ()):
        lines.append(f"{label!r} is used as a class, although it looks like a missing label")
    for split, labels in found.get("absent_labels", {}).items():
        lines.append(f"{split} has no text with the label{'s'[: len(labels) > 1]} {shown(labels)}")
    for each in found.get("shared_texts", ()):
        one, other = each["splits"]
        what = "1 text is" if each["texts"] == 1 else f"{each['texts']:,} texts are"
        lines.append(f"{what} in {one} and in {other}, such as {' and '.join(each['places'])}")
    return lines
