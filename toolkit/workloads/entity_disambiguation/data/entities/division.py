"""Which split a sentence is in: by a hash of the text that it is from."""

from __future__ import annotations

import hashlib

from toolkit.errors import DataError
from toolkit.workloads.entity_disambiguation.data.entities.sentences import Sentence

TEST, VALIDATION, TRAIN = "test", "validation", "train"
#: doc_sent_idx: which sentence of its text this one is.
_PLACE = "doc_sent_idx"


def percentile(*key: object) -> int:
    """Hash values to 0 to 99: SHA-1 of the text of the tuple, modulo 100.

    As in bootleg_data_prep, so that its splits are these.
    """
    return int(hashlib.sha1(repr(key).encode()).hexdigest(), 16) % 100


def split_of(sentence: Sentence, percent: int, by: str) -> str:
    """Return the split of a sentence: test below `percent`, validation below twice that, else train.

    by  source: all sentences of a text are in one split; sentence: each is divided alone. The id
        replaces a source that is missing.
    """
    at = percentile(*_key(sentence, by))
    return TEST if at < percent else VALIDATION if at < 2 * percent else TRAIN


def check_percent(percent: int) -> None:
    """Raise DataError unless something is left for training."""
    if not 0 < percent < 50:
        raise DataError(f"split is {percent}, expected percents of test and of validation from 1 to 49 each")


def _key(sentence: Sentence, by: str) -> tuple[object, ...]:
    source = sentence.source or (sentence.id,)
    place = sentence.record.get(_PLACE, sentence.id)
    return (place, *source) if by == "sentence" else source
