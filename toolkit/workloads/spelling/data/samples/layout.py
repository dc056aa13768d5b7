"""File names of a prepared set, the types of its arrays, the tables of its database."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from toolkit.data.prepared.columns import Column
from toolkit.workloads.spelling.config.data import SpellingTexts

#: Increase this if the same input would give different files. Sets of older versions are then not used.
VERSION = 3

TOKENIZER = "tokenizer.json"
OUTPUT_TOKENIZER = "output_tokenizer.json"
DICTIONARY = "dictionary.txt"
#: The files that encode texts: their keys in a section, and their names in a set.
ENCODERS = {"tokenizer_path": TOKENIZER, "output_tokenizer_path": OUTPUT_TOKENIZER, "dictionary": DICTIONARY}

#: A split is stored as its index here.
SPLITS = ("train", "validation", "test")

#: Samples of a shard: a few seconds of work. An interruption costs each process at most one shard.
SHARD = 2000

# One list per sample. A file has the lists of all samples, another one their offsets, [n + 1].
#: Special tokens included. With a tokenizer of characters, spaces are tokens, too.
TOKENS = "tokens"
#: The piece of each token; NO_PIECE for special tokens and spaces. With a tokenizer of characters, pieces and
#: words are from the text with its white space repaired.
PIECES = "pieces"
#: The word of each piece.
WORDS = "words"
#: Features of each piece, the first in the lowest bit. The bit after the last is 1 if its word is real.
FEATURES = "features"
#: The label of each word, 1 for an error; UNKNOWN if the file has only one label for the text.
LABELS = "labels"
#: The repair of white space for each token; UNKNOWN for special tokens, and if it is not known. Empty unless
#: tokens are characters.
REPAIRS = "repairs"
#: The tokens of the target without special tokens, and the word of each; empty without an output tokenizer.
OUTPUTS = "outputs"
OUTPUT_WORDS = "output_words"
#: Which lists have the same lengths.
LISTS = ((TOKENS, PIECES), (WORDS, FEATURES), (LABELS,), (REPAIRS,), (OUTPUTS, OUTPUT_WORDS))

# One number per sample, [n].
#: 1 if the text has an error.
ERRORS = "errors"
#: The file of the text, its line there (from 0), its split.
SOURCES = "sources"
LINES = "lines"
SPLIT = "split"

DTYPES = {
    TOKENS: "<u4", PIECES: "<u2", WORDS: "<u2", FEATURES: "<u2", LABELS: "|u1", REPAIRS: "|u1",
    OUTPUTS: "<u4", OUTPUT_WORDS: "<u2", ERRORS: "|u1", SOURCES: "<u2", LINES: "<i8", SPLIT: "|u1",
}  # fmt: skip

NO_PIECE = 65535
UNKNOWN = 255

#: Reasons why lines are left out.
EMPTY, TOO_LONG = "empty", "too long"


def encoded_by(data: SpellingTexts, folder: Path) -> SpellingTexts:
    """Return the data section, with its tokenizers and its dictionary replaced by those in a folder."""
    held = {key: str(folder / name) if (folder / name).exists() else None for key, name in ENCODERS.items()}
    return replace(data, **held)  # type: ignore[arg-type]


def column(name: str) -> Column:
    """Return the column of a list or a number."""
    return Column(f"{name}.bin", DTYPES[name])


def offsets(name: str) -> Column:
    """Return the column of the offsets of a list; a group of LISTS shares the offsets of its first list."""
    return Column(f"{name}_offsets.bin", "<i8")


SCHEMA = """
CREATE TABLE sources (
    id INTEGER PRIMARY KEY, file TEXT NOT NULL, sha256 TEXT NOT NULL, split TEXT, lines INTEGER NOT NULL
);
CREATE TABLE samples (
    sample_id INTEGER PRIMARY KEY,
    dataset INTEGER NOT NULL REFERENCES sources,
    line INTEGER NOT NULL,
    split TEXT NOT NULL,
    text TEXT NOT NULL,
    target TEXT,
    tokens INTEGER NOT NULL,
    words INTEGER NOT NULL,
    errors INTEGER
);
CREATE TABLE left_out (
    dataset INTEGER NOT NULL REFERENCES sources,
    line INTEGER NOT NULL,
    split TEXT NOT NULL,
    text TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    words INTEGER NOT NULL,
    reason TEXT NOT NULL
);
CREATE TABLE counts (
    dataset INTEGER NOT NULL REFERENCES sources, split TEXT NOT NULL, samples INTEGER NOT NULL,
    tokens INTEGER NOT NULL, words INTEGER NOT NULL, errors INTEGER NOT NULL
);
"""

#: Executed after the rows are written.
INDICES = """
INSERT INTO counts SELECT dataset, split, count(*), sum(tokens), sum(words), coalesce(sum(errors), 0)
    FROM samples GROUP BY dataset, split ORDER BY dataset, split;
CREATE INDEX samples_by_split ON samples (split, dataset);
CREATE INDEX left_out_by_split ON left_out (split, dataset);
"""
