"""The samples of one split, mapped into memory, and batches of samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.data.prepared.database import reading, rows_in
from toolkit.data.prepared.manifest import PREPARE_AGAIN
from toolkit.data.provenance import Origin
from toolkit.data.ragged import Lists
from toolkit.errors import DataError
from toolkit.nlp.tokens import PAD_ID

Indices = Sequence[int] | npt.NDArray[np.integer]

_FRAGMENTS = "SELECT sample_id, text FROM fragments WHERE sample_id IN ({places})"
_ORIGINS = """
SELECT sample_id, sources.file, texts.line, fragments.label, fragments.text
FROM fragments JOIN texts ON fragments.text_id = texts.id JOIN sources ON texts.source = sources.id
WHERE sample_id IN ({places})
"""
_TEXTS = "SELECT id, text FROM texts WHERE id IN ({places})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """The samples of one split; index i of every array is sample i. Arrays are read-only.

    ids       [n] int64, ids in samples.sqlite
    text_ids  [n] int64, the text of each sample; fragments of one text are adjacent
    lengths   [n] int32, number of tokens, special ones included; at least 1
    labels    [n] int32, codes
    tokens    tokens of the samples of all splits, by id; uint16 or uint32
    """

    ids: npt.NDArray[np.int64]
    text_ids: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int32]
    labels: npt.NDArray[np.int32]
    tokens: Lists
    database: Path

    def __len__(self) -> int:
        return len(self.ids)

    def texts(self, indices: Indices) -> list[str]:
        """Return the text of each sample; for a fragment, only its part of the text.

        Raises DataError if the database is damaged.
        """
        return self._look_up(_FRAGMENTS, self.ids[np.asarray(indices, dtype=np.int64)])

    def whole_texts(self, text_ids: Indices) -> list[str]:
        """Return whole texts by id, as in the source. Raises DataError if the database is damaged."""
        return self._look_up(_TEXTS, np.asarray(text_ids, dtype=np.int64))

    def origins(self, indices: npt.NDArray[np.integer]) -> dict[int, Origin]:
        """Return file, line, label and text of samples, by index in the split.

        Raises DataError if the database is damaged.
        """
        numbers = {int(self.ids[index]): int(index) for index in indices}
        return {
            numbers[key]: Origin(sample=numbers[key], file=file, line=line, label=label, text=text)
            for key, file, line, label, text in self._rows(_ORIGINS, list(numbers))
        }

    def _look_up(self, query: str, ids: npt.NDArray[np.int64]) -> list[str]:
        wanted: list[int] = ids.tolist()
        found: dict[int, str] = dict(self._rows(query, wanted))
        try:
            return [found[number] for number in wanted]
        except KeyError as error:
            raise DataError(f"{self.database} is damaged ({error}); {PREPARE_AGAIN}") from error

    def _rows(self, query: str, wanted: Sequence[int]) -> Iterator[Any]:
        with reading(self.database) as connection:
            yield from rows_in(connection, query, wanted)


def pad_batch(
    samples: Samples, indices: Indices, pad_id: int = PAD_ID
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Gather samples into a batch: tokens [B, L], lengths [B], labels [B], all int64.

    L is the longest length, or 1 for an empty batch. Shorter samples are padded with pad_id.
    """
    picked = np.asarray(indices, dtype=np.int64)
    tokens = samples.tokens.gather(samples.ids[picked], pad_id)
    return tokens, samples.lengths[picked].astype(np.int64), samples.labels[picked].astype(np.int64)
