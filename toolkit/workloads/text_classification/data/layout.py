"""File names of a prepared set, the types of its arrays and the tables of its database."""

from __future__ import annotations

from toolkit.data.prepared.columns import Column

#: Goes up whenever the same input would make other files; older sets are then left alone.
VERSION = 2

#: Of the tokenizers words and whitespace.
VOCABULARY = "vocabulary.json"
#: All samples' tokens one after the other, uint16 or uint32 (meta: token_dtype).
TOKENS = Column("tokens.bin")
#: [samples + 1] where each sample begins in TOKENS.
OFFSETS = Column("offsets.bin", "<i8")
#: [samples]
LABELS = Column("labels.bin", "<i4")
#: [samples] the text that each is a fragment of.
TEXT_IDS = Column("text_ids.bin", "<i8")

# Nothing that SQLite 3.26 lacks: login nodes have old ones. SQLite ignores the case of names, so that
# `samples` is also the original's Samples; its other tables are views.
SCHEMA = """
CREATE TABLE sources (
    id INTEGER PRIMARY KEY, file TEXT NOT NULL, sha256 TEXT NOT NULL, rows INTEGER NOT NULL
);
CREATE TABLE labels (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE label_counts (
    split TEXT NOT NULL, label INTEGER NOT NULL REFERENCES labels, texts INTEGER NOT NULL,
    samples INTEGER NOT NULL
);
CREATE TABLE tokens (id INTEGER PRIMARY KEY, token TEXT NOT NULL, count INTEGER NOT NULL);
CREATE TABLE texts (
    id INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES sources,
    line INTEGER NOT NULL,
    text TEXT NOT NULL,
    label INTEGER NOT NULL REFERENCES labels,
    split TEXT
);
CREATE TABLE samples (
    sample_id INTEGER PRIMARY KEY,
    text_id INTEGER NOT NULL REFERENCES texts,
    fragment INTEGER NOT NULL,
    tok_ids TEXT NOT NULL,
    mask_length INTEGER NOT NULL,
    label INTEGER NOT NULL REFERENCES labels,
    split TEXT NOT NULL,
    first_character INTEGER NOT NULL,
    characters INTEGER NOT NULL
);
CREATE VIEW fragments AS
    SELECT sample_id, text_id, fragment, samples.split, labels.name AS label,
        substr(texts.text, first_character, characters) AS text
    FROM samples JOIN texts ON samples.text_id = texts.id JOIN labels ON samples.label = labels.id;
CREATE VIEW LabelEncodings AS SELECT CAST(id AS TEXT) AS key_col, name AS val_col FROM labels ORDER BY id;
CREATE VIEW TrainQueue AS SELECT sample_id FROM samples WHERE split = 'train' ORDER BY sample_id;
CREATE VIEW ValidateQueue AS SELECT sample_id FROM samples WHERE split = 'validation' ORDER BY sample_id;
CREATE VIEW TestQueue AS SELECT sample_id FROM samples WHERE split = 'test' ORDER BY sample_id;
"""

#: Made after the rows are written: the queues and label counts then read no tokens.
INDICES = """
CREATE INDEX samples_by_split ON samples (split, label);
CREATE INDEX samples_by_text ON samples (text_id);
"""
