"""Assign sentences to splits, by a hash of the text that a sentence is from."""

from __future__ import annotations

import hashlib

from toolkit.workloads.entity_disambiguation.data.entities.sentences import Sentence

TEST, VALIDATION, TRAIN = "test", "validation", "train"
#: The key of a sentence's position in its text.
_POSITION = "doc_sent_idx"


def percentile(*key: object) -> int:
    """Hash values to a number from 0 to 99: SHA-1 of the tuple's repr, modulo 100.

    This gives the splits of bootleg_data_prep.
    """
    return int(hashlib.sha1(repr(key).encode()).hexdigest(), 16) % 100


def split_of(sentence: Sentence, percent: int, by: str) -> str:
    """Return the split of a sentence: test below `percent`, validation below twice that, else train.

    by  source: all sentences of a text are in one split; sentence: each is assigned alone. Without a source
        the sentence's id is hashed.
    """
    source = sentence.source or (sentence.id,)
    position = sentence.record.get(_POSITION, sentence.id)
    at = percentile(position, *source) if by == "sentence" else percentile(*source)
    return TEST if at < percent else VALIDATION if at < 2 * percent else TRAIN
