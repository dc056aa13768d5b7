"""Output formats: one line for each text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from toolkit.errors import DataError
from toolkit.workloads.spelling.data.texts.words import normalised, words_of
from toolkit.workloads.spelling.metrics.edits import edited_words, edits_between

Labels = Sequence[int]


def labels_line(text: str, labels: Labels) -> str:
    """0 or 1 for each word, or for the text."""
    return " ".join(map(str, labels))


def any_line(text: str, labels: Labels) -> str:
    """1 for a text with an error, else 0."""
    return str(int(any(labels)))


def text_and_labels(text: str, labels: Labels) -> str:
    """The text, a tab, its labels, as `parse_detected` reads them."""
    return f"{normalised(text)}\t{labels_line(text, labels)}"


def marked(text: str, labels: Labels) -> str:
    """The text with its wrong words in brackets; a text with one label is wrong as a whole."""
    words = words_of(text)
    if len(labels) != len(words):
        return f"[{' '.join(words)}]" if any(labels) else " ".join(words)
    return " ".join(f"[{word}]" if label else word for word, label in zip(words, labels, strict=True))


def text_line(text: str, made: str) -> str:
    """The corrected text."""
    return made


def changed_line(text: str, made: str) -> str:
    """1 for each word of the text that was changed, else 0. Raises DataError as `edits_between`."""
    text, made = normalised(text), normalised(made)
    changed = edited_words(text, made, edits_between([text], [made])[0])[0]
    return " ".join(str(int(word in changed)) for word in range(len(text.split())))


def any_change(text: str, made: str) -> str:
    """1 for a text that was changed, else 0."""
    return str(int(normalised(text) != normalised(made)))


#: Asks for repaired white space only, of models that can do more.
REPAIRED = "repaired"
#: Formats of labels, and of texts.
OF_LABELS: Mapping[str, Callable[[str, Labels], str]] = {
    "labels": labels_line,
    "any": any_line,
    "with_text": text_and_labels,
    "marked": marked,
}
OF_TEXTS: Mapping[str, Callable[[str, str], str]] = {
    "text": text_line,
    REPAIRED: text_line,
    "changed": changed_line,
    "any_change": any_change,
}


def parse_detected(line: str, where: str) -> tuple[str, list[int]]:
    """Return text and labels of a line that has both. Raises DataError, which begins with `where`."""
    text, tab, labels = line.rpartition("\t")
    if not tab and line.strip():
        raise DataError(
            f"{where}: found no tab, expected a text, a tab, and labels, as `stk detect --with-text` writes"
        )
    return text, parse_labels(labels, text, where)


def parse_labels(line: str, text: str, where: str) -> list[int]:
    """Return the labels of a text. Raises DataError, which begins with `where`."""
    cells, words = line.split(), len(words_of(text))
    if wrong := [cell for cell in cells if cell not in ("0", "1")]:
        raise DataError(
            f"{where}: found {wrong[0][:40]!r} among the labels, expected 0 (right) and 1 (wrong)"
        )
    if len(cells) not in (1, words):
        raise DataError(
            f"{where}: found {len(cells)} labels, expected {words}, one for each word, or one for the text"
        )
    return [*map(int, cells)]
