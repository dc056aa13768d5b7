"""File names of a prepared set of mentions, the types of its arrays and the tables of its database."""

from __future__ import annotations

from toolkit.data.prepared.columns import Column

#: Increase this if the same input would give different files. Sets of older versions are then not used.
VERSION = 1

# Columns of samples, [n] unless noted. Tokens of all samples are concatenated.
TOKENS = Column("tokens.bin")
#: [n + 1]
OFFSETS = Column("offsets.bin", "<i8")
#: [n, 2] first token of the mention, and the token after its last one, without markers.
SPANS = Column("spans.bin", "<i2", 2)
#: Row in the table of candidates.
ALIASES = Column("aliases.bin", "<i4")
#: Position of the gold among the candidates; -1 and -2 as in metrics/slice_score.py.
LABELS = Column("labels.bin", "<i2")
#: Sentence of each sample; samples of one sentence are adjacent.
SENTENCES = Column("sentences.bin", "<i8")
#: Probability of hiding a token of the mention in training.
MASKING = Column("masking.bin", "<f4")
#: [n, slices] 1 for a member.
MEMBERS = Column("members.bin", "|u1")

# Columns of aliases, [aliases, width].
#: Entities, the most popular first; rows are padded with -1.
CANDIDATES = Column("candidates.bin", "<i4")
#: Log of each candidate's share of its alias.
PRIORS = Column("priors.bin", "<f4")

# Columns of entities, by number; 0 is "none of the candidates".
ENTITY_TOKENS = Column("entity_tokens.bin")
ENTITY_OFFSETS = Column("entity_offsets.bin", "<i8")
#: Number of tokens of the title, which follow the special tokens.
TITLE_LENGTHS = Column("title_lengths.bin", "<u2")
ENTITY_MASKING = Column("entity_masking.bin", "<f4")
TYPES = Column("types.bin", "<i4")
TYPE_OFFSETS = Column("type_offsets.bin", "<i8")
#: Names of relations, and their objects (-1: not in the database).
RELATIONS = Column("relations.bin", "<i4")
OBJECTS = Column("objects.bin", "<i4")
RELATION_OFFSETS = Column("relation_offsets.bin", "<i8")

#: The number for no entity.
NO_ENTITY = -1
#: The number of the entity "none of the candidates".
NONE_OF_THEM = 0

SCHEMA = """
CREATE TABLE sources (
    id INTEGER PRIMARY KEY, file TEXT NOT NULL, sha256 TEXT NOT NULL, split TEXT, sentences INTEGER
);
CREATE TABLE sentences (
    id INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES sources,
    line INTEGER NOT NULL,
    sent_idx_unq INTEGER NOT NULL,
    split TEXT NOT NULL,
    text TEXT NOT NULL,
    record TEXT NOT NULL
);
CREATE TABLE mentions (
    sample_id INTEGER PRIMARY KEY,
    sentence INTEGER NOT NULL REFERENCES sentences,
    split TEXT NOT NULL,
    line INTEGER NOT NULL,
    position INTEGER NOT NULL,
    alias TEXT NOT NULL,
    first_character INTEGER NOT NULL,
    last_character INTEGER NOT NULL,
    gold TEXT NOT NULL,
    gold_title TEXT NOT NULL,
    is_gold INTEGER NOT NULL,
    label INTEGER NOT NULL,
    candidates INTEGER NOT NULL,
    is_popular INTEGER NOT NULL,
    types TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    count INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE entities (
    eid INTEGER PRIMARY KEY, qid TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL,
    tokens INTEGER NOT NULL
);
CREATE TABLE candidates (
    alias TEXT NOT NULL, place INTEGER NOT NULL, eid INTEGER NOT NULL REFERENCES entities,
    score REAL NOT NULL, PRIMARY KEY (alias, place)
) WITHOUT ROWID;
CREATE TABLE counts (gold TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE slices (name TEXT NOT NULL, condition TEXT, split TEXT NOT NULL, mentions INTEGER NOT NULL);
"""

#: Made after the rows are written.
INDICES = """
CREATE INDEX mentions_by_sentence ON mentions (sentence);
CREATE INDEX sentences_by_split ON sentences (split);
"""
