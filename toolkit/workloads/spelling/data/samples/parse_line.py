"""A line of a source, with its target or labels. Imports no numpy, which takes time."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import DataError
from toolkit.nlp.characters import no_character
from toolkit.workloads.spelling.data.samples.sources import Source
from toolkit.workloads.spelling.data.texts.words import normalised, parse_labels_of

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A text from a file. A text without target and labels is clean: it gets noise.

    target  the right text, if the file has it
    labels  1 for each wrong word, or a single label for the text, if the file has them
    """

    text: str
    target: str | None = None
    labels: tuple[int, ...] | None = None


def holds_labels(path: Path) -> bool:
    """Whether a file seems to have labels: at least half of its first words are 0 or 1. Raises OSError."""
    with open(path, "rb") as stream:
        words = stream.read(_BLOCK).removeprefix(BOM_UTF8).split()
    return 2 * sum(not word.strip(b"01") for word in words) >= len(words)


def parse_line(source: Source, place: int, texts: Sequence[str], *, has_labels: bool) -> Line:
    """Return line `place`, from 0, of a source. Raises DataError naming file and line.

    texts       the line of each of its files
    has_labels  whether its second file has labels instead of texts
    """
    if source.has_records:
        return _record(source, place, texts[0])
    text = normalised(texts[0])
    if not source.has_golds:
        return Line(text=text)
    gold = normalised(texts[1])
    if not has_labels:
        return Line(text=text, target=gold)
    labels = parse_labels_of(text, gold, f"{source.files[1]}:{place + 1}")
    return Line(text=text, labels=tuple(labels))


def _record(source: Source, place: int, text: str) -> Line:
    where = f"{source.path}:{place + 1}"
    if not text.strip():
        return Line(text="")
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON: {error}; expected an object with `sequence`") from error
    sequence, target = (
        record.get(key) if isinstance(record, dict) else None for key in ("sequence", "target_sequence")
    )
    if not isinstance(sequence, str) or not isinstance(target, str | None):
        raise DataError(
            f"{where}: expected an object with texts under `sequence` and optionally `target_sequence`"
        )
    # Only an escape can encode half a character, which tokenizers and databases cannot store.
    if "\\u" in text and (odd := no_character(sequence + (target or ""))):
        raise DataError(f"{where}: {odd} is not a character of text; correct the line")
    return Line(text=normalised(sequence), target=None if target is None else normalised(target))
