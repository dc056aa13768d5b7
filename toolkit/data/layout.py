"""File names of a prepared set, and the types of its arrays."""

from __future__ import annotations

#: Goes up whenever the same input would make other files; older sets are then left alone.
VERSION = 1

META = "meta.json"
DATABASE = "samples.sqlite"
VOCABULARY = "vocabulary.json"
#: All samples' tokens one after the other, uint16 or uint32 (meta: token_dtype).
TOKENS = "tokens.bin"
#: [samples + 1] where each sample begins in TOKENS.
OFFSETS = "offsets.bin"
#: [samples]
LABELS = "labels.bin"

OFFSET_DTYPE = "<i8"
LABEL_DTYPE = "<i4"
ID_DTYPE = "<i8"


def split_file(split: str) -> str:
    """The ids of a split's samples, ascending."""
    return f"split_{split}.bin"


def token_dtype(vocabulary_size: int) -> str:
    return "<u2" if vocabulary_size <= 1 << 16 else "<u4"


SCHEMA = """
CREATE TABLE sources (
    id INTEGER PRIMARY KEY, file TEXT NOT NULL, sha256 TEXT NOT NULL, rows INTEGER NOT NULL
);
CREATE TABLE labels (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE label_counts (
    split TEXT NOT NULL, label INTEGER NOT NULL REFERENCES labels, samples INTEGER NOT NULL
);
CREATE TABLE tokens (id INTEGER PRIMARY KEY, token TEXT NOT NULL, count INTEGER NOT NULL);
CREATE TABLE samples (
    id INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES sources,
    line INTEGER NOT NULL,
    text TEXT NOT NULL,
    label INTEGER NOT NULL REFERENCES labels,
    length INTEGER NOT NULL,
    split TEXT NOT NULL
);
"""
