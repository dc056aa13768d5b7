"""Warnings about a table: labels that look alike, splits that lack a label, texts in two splits.

None of them ends a run. Imports nothing slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolkit.workloads.text_classification.data.sources.formats.wording import short, shown

#: Texts that other programs write if there is no value.
_MISSING = frozenset({"nan", "null", "none", "n/a", "na", "<na>", "nil"})


def notable(
    labels: Sequence[str], counts: Mapping[str, Sequence[int]], shared: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what people should know before they train, in the form of the manifest.

    counts   of each split the texts of each label
    shared   texts in two splits: {splits, texts: how many different ones, places: where one of them is}
    """
    missing = absent(labels, counts).items()
    return {
        "alike_labels": [[short(label) for label in group] for group in alike(labels)],
        "absent_labels": {name: [short(label) for label in of_split] for name, of_split in missing},
        "shared_texts": list(shared),
        "only_label": short(labels[0]) if len(labels) == 1 else None,
        "missing_labels": [short(label) for label in labels if label.strip().casefold() in _MISSING],
    }


def alike(labels: Iterable[str]) -> list[tuple[str, ...]]:
    """Groups of labels that are equal without case and blanks, or as numbers."""
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


def absent(labels: Sequence[str], counts: Mapping[str, Sequence[int]]) -> dict[str, tuple[str, ...]]:
    """The labels that a split has no text of, by split; complete splits are left out.

    counts   of each split the texts of each label
    """
    found = {
        split: tuple(label for label, count in zip(labels, of_label, strict=True) if not count)
        for split, of_label in counts.items()
    }
    return {split: missing for split, missing in found.items() if missing}


def describe_notable(found: Mapping[str, Any]) -> list[str]:
    """Return the findings of `notable`, a line for each; none for an older manifest, which lacks them."""
    lines = [
        f"labels that differ only by case, blanks or as a number is written are separate classes: "
        f"{', '.join(map(repr, group))}"
        for group in found.get("alike_labels", ())
    ]
    if (only := found.get("only_label")) is not None:
        lines.append(f"there is one label, {only!r}: nothing can be learnt, and every score is perfect")
    for label in found.get("missing_labels", ()):
        lines.append(f"{label!r} is a class like any other, though it looks like a missing label")
    for split, labels in found.get("absent_labels", {}).items():
        lines.append(f"{split} has no text with the label{'s'[: len(labels) > 1]} {shown(labels)}")
    for each in found.get("shared_texts", ()):
        one, other = each["splits"]
        what = "1 text is" if each["texts"] == 1 else f"{each['texts']:,} texts are"
        lines.append(f"{what} in {one} and in {other}, such as {' and '.join(each['places'])}")
    return lines
