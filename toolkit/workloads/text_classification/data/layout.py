"""File names of a prepared set, the types of its arrays and the tables of its database."""

from __future__ import annotations

from toolkit.data.prepared.columns import Column

#: Increase this if the same input would give different files. Sets of older versions are then not used.
VERSION = 2

#: The vocabulary of the tokenizers `words` and `whitespace`.
VOCABULARY = "vocabulary.json"
#: Tokens of all samples, concatenated; uint16 or uint32 (meta: token_dtype).
TOKENS = Column("tokens.bin")
#: [samples + 1] where each sample begins in TOKENS.
OFFSETS = Column("offsets.bin", "<i8")
#: [samples]
LABELS = Column("labels.bin", "<i4")
#: [samples] the text of each sample.
TEXT_IDS = Column("text_ids.bin", "<i8")

# Only features of SQLite 3.26 are used, because login nodes have old versions. Names are case-insensitive in
# SQLite, so `samples` is also the table Samples of bert_train_parallel. Its other tables are views here.
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

#: Made after the rows are written. With these indices, queries of queues and label counts do not read tokens.
INDICES = """
CREATE INDEX samples_by_split ON samples (split, label);
CREATE INDEX samples_by_text ON samples (text_id);
"""
