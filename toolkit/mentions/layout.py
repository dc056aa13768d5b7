"""File names of a prepared set of mentions, the types of its arrays and the tables of its database."""

from __future__ import annotations

from toolkit.data.layout import RESULTS

#: Goes up whenever the same input would make other files; older sets are then left alone.
VERSION = 1

#: As in every prepared set: runs leave their scores in it.
DATABASE = "samples.sqlite"
TOKENIZER = "tokenizer.json"

# Of samples, [n] unless said otherwise. Tokens of all samples stand one after the other.
TOKENS = "tokens.bin"
#: [n + 1]
OFFSETS = "offsets.bin"
#: [n, 2] first token of the mention, and the one behind it, markers not included.
SPANS = "spans.bin"
#: Row of the table of candidates.
ALIASES = "aliases.bin"
#: Place of the gold among the candidates; -1 and -2 as in toolkit/metrics/disambiguation.py.
LABELS = "labels.bin"
#: Sentence that each is from; samples of one stand together.
SENTENCES = "sentences.bin"
#: With which probability training may hide a token of the mention.
MASKING = "masking.bin"
#: [n, slices] 1 for a member.
MEMBERS = "members.bin"

# Of aliases, [aliases, width].
#: Entities, the most popular first; -1 fills a row up.
CANDIDATES = "candidates.bin"
#: Log of each candidate's share of the alias.
PRIORS = "priors.bin"

# Of entities, by their number; 0 is "none of the candidates".
ENTITY_TOKENS = "entity_tokens.bin"
ENTITY_OFFSETS = "entity_offsets.bin"
#: Tokens of the title, which stand behind the special ones.
TITLE_LENGTHS = "title_lengths.bin"
ENTITY_MASKING = "entity_masking.bin"
TYPES = "types.bin"
TYPE_OFFSETS = "type_offsets.bin"
#: Names of relations, and beside them the entities that they lead to (-1: none of the database).
RELATIONS = "relations.bin"
OBJECTS = "objects.bin"
RELATION_OFFSETS = "relation_offsets.bin"

OFFSET_DTYPE = "<i8"
ID_DTYPE = "<i4"
PLACE_DTYPE = "<i2"
FLOAT_DTYPE = "<f4"
BIT_DTYPE = "|u1"

#: Stands for no entity.
NOBODY = -1
#: The entity "none of the candidates".
NONE_OF_THEM = 0


def split_file(split: str) -> str:
    """The ids of a split's samples, ascending."""
    return f"split_{split}.bin"


SCHEMA = (
    """
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
    + RESULTS
)

#: Made when the rows stand.
INDICES = """
CREATE INDEX mentions_by_sentence ON mentions (sentence);
CREATE INDEX sentences_by_split ON sentences (split);
"""
