"""Output formats: one line for each text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from toolkit.errors import DataError
from toolkit.workloads.spelling.data.texts.words import normalised, parse_labels_of
from toolkit.workloads.spelling.metrics.edits import edited_words, edits_between

Labels = Sequence[int]


#: Repaired white space only, even if the model can correct words.
REPAIRED = "repaired"


def _marked(text: str, labels: Labels) -> str:
    words = text.split()
    if len(labels) != len(words):
        return f"[{' '.join(words)}]" if any(labels) else " ".join(words)
    return " ".join(f"[{word}]" if label else word for word, label in zip(words, labels, strict=True))


def _changed(text: str, made: str) -> str:
    text, made = normalised(text), normalised(made)
    changed = edited_words(text, made, edits_between([text], [made])[0])[0]
    return " ".join(str(int(word in changed)) for word in range(len(text.split())))


#: Lines for a text and its labels: labels of its words, or one label for the text.
OF_LABELS: Mapping[str, Callable[[str, Labels], str]] = {
    "labels": lambda text, labels: " ".join(map(str, labels)),
    # 1 for a text with an error, else 0.
    "any": lambda text, labels: str(int(any(labels))),
    # The text, a tab, its labels, as `parse_detected` reads them.
    "with_text": lambda text, labels: f"{normalised(text)}\t{' '.join(map(str, labels))}",
    # The text with its wrong words in brackets; with a single label, a wrong text is in brackets as a whole.
    "marked": _marked,
}
#: Lines for a text and its correction.
OF_TEXTS: Mapping[str, Callable[[str, str], str]] = {
    "text": lambda text, made: made,
    REPAIRED: lambda text, made: made,
    # 1 for each word of the text that was changed, else 0. Raises DataError as `edits_between`.
    "changed": _changed,
    # 1 for a text that was changed, else 0.
    "any_change": lambda text, made: str(int(normalised(text) != normalised(made))),
}


def parse_detected(line: str, where: str) -> tuple[str, list[int]]:
    """Return text and labels of a line that has both. Raises DataError; its message begins with `where`."""
    text, tab, labels = line.rpartition("\t")
    if not tab and line.strip():
        raise DataError(
            f"{where}: found no tab, expected a text, a tab, and labels, as `stk detect --with-text` writes"
        )
    return text, parse_labels_of(text, labels, where)
