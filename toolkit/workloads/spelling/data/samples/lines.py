"""Read lines of text files by number, with their targets or labels."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from toolkit.errors import DataError
from toolkit.nlp.characters import no_character
from toolkit.workloads.spelling.data.samples.sources import Source
from toolkit.workloads.spelling.data.texts.text_files import decoded
from toolkit.workloads.spelling.data.texts.words import normalised, parse_labels_of

Starts = npt.NDArray[np.int64]

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


def line_starts(path: Path) -> Starts:
    """Return the positions at which the lines of a file begin, and its end: [lines + 1]. Raises OSError."""
    found, size = [np.zeros(1, np.int64)], 0
    with open(path, "rb") as stream:
        while block := stream.read(_BLOCK):
            found.append(np.flatnonzero(np.frombuffer(block, np.uint8) == 10) + (size + 1))
            size += len(block)
    starts = np.concatenate(found)
    return starts if starts[-1] == size else np.append(starts, size)


def holds_labels(path: Path) -> bool:
    """Whether a file seems to have labels: at least half of its first words are 0 or 1. Raises OSError."""
    with open(path, "rb") as stream:
        words = stream.read(_BLOCK).removeprefix(BOM_UTF8).split()
    return 2 * sum(not word.strip(b"01") for word in words) >= len(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineReader:
    """Reads lines of a source.

    starts      the starts of the lines of each of its files, as returned by `line_starts`
    has_labels  whether its second file has labels instead of texts
    """

    source: Source
    starts: tuple[Starts, ...]
    has_labels: bool

    def read(self, places: Starts) -> Iterator[Line]:
        """Yield the lines of these places, from 0. Raises DataError naming file and line."""
        with ExitStack() as stack:
            streams = [stack.enter_context(open(file, "rb")) for file in self.source.files]
            for place in places.tolist():
                texts = [
                    _text(file, stream, starts, place)
                    for file, stream, starts in zip(self.source.files, streams, self.starts, strict=True)
                ]
                yield self._line(place, texts)

    def _line(self, place: int, texts: list[str]) -> Line:
        if self.source.has_records:
            return self._record(place, texts[0])
        text = normalised(texts[0])
        if not self.source.has_golds:
            return Line(text=text)
        gold = normalised(texts[1])
        if not self.has_labels:
            return Line(text=text, target=gold)
        labels = parse_labels_of(text, gold, f"{self.source.files[1]}:{place + 1}")
        return Line(text=text, labels=tuple(labels))

    def _record(self, place: int, text: str) -> Line:
        where = f"{self.source.path}:{place + 1}"
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


def _text(file: Path, stream: BinaryIO, starts: Starts, place: int) -> str:
    stream.seek(int(starts[place]))
    size = int(starts[place + 1] - starts[place])
    line = stream.read(size)
    if len(line) < size:
        raise DataError(f"{file}:{place + 1} changed while it was read; start again when its writer is done")
    return decoded(file, place + 1, line)
