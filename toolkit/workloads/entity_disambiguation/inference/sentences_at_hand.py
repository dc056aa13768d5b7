"""Convert sentences in memory to samples like those of a prepared set. Imports no torch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from toolkit.data.ragged import Lists
from toolkit.data.sources.source_files import TEST
from toolkit.workloads.entity_disambiguation.data.encoding.context import Context, contexts
from toolkit.workloads.entity_disambiguation.data.encoding.entity_text import encode_entities
from toolkit.workloads.entity_disambiguation.data.encoding.tokenizer import MarkedTokenizer
from toolkit.workloads.entity_disambiguation.data.entities.sentences import Sentence
from toolkit.workloads.entity_disambiguation.data.samples import layout
from toolkit.workloads.entity_disambiguation.data.samples.entity_tables import NONE, EntityTables
from toolkit.workloads.entity_disambiguation.data.samples.samples import MentionSamples, Tables
from toolkit.workloads.entity_disambiguation.metrics.slice_score import NOT_SCORED


class SentencesAtHand(NamedTuple):
    """Sentences as samples.

    samples  the mentions with candidates
    places   for each sample, the positions of its sentence and of its mention in that sentence
    names    entity ids, by their numbers in the tables of the samples
    """

    samples: MentionSamples
    places: Sequence[tuple[int, int]]
    names: Mapping[int, str]


def samples_at_hand(
    sentences: Sequence[Sentence], entities: EntityTables, tokenizer: MarkedTokenizer
) -> SentencesAtHand:
    """Make samples of all mentions with candidates, with the same tokens and numbers of types as in training.

    entities  the database and the numbers of types and relations; entities are numbered anew
    Memory: the sentences and all their candidates.
    """
    found = {
        (number, position): mention
        for number, sentence in enumerate(sentences)
        for position, mention in enumerate(sentence.mentions)
        if entities.candidates(mention.alias)
    }
    aliases = list(dict.fromkeys(mention.alias for mention in found.values()))
    met = {qid for alias in aliases for qid, _ in entities.candidates(alias)}
    numbers = {qid: number for number, qid in enumerate(sorted(met), start=1)}
    row_of = {alias: row for row, alias in enumerate(aliases)}
    samples = _samples(
        contexts(
            [sentences[number].text for number, _ in found],
            [mention.characters for mention in found.values()],
            tokenizer, window=entities.data.window, max_tokens=entities.data.max_tokens,
        ),
        aliases=[row_of[mention.alias] for mention in found.values()],
        sentences=[number for number, _ in found],
        tables=_tables(aliases, replace(entities, numbers=numbers), tokenizer),
    )  # fmt: skip
    names = {number: qid for qid, number in numbers.items()}
    return SentencesAtHand(samples, list(found), {layout.NONE_OF_THEM: NONE, **names})


def _tables(aliases: Collection[str], entities: EntityTables, tokenizer: MarkedTokenizer) -> Tables:
    candidates, priors = entities.of_aliases(aliases)
    parts = [entities.parts(qid) for qid in ("", *entities.numbers)]
    texts = list(encode_entities(parts, tokenizer, entities.data.max_entity_tokens))
    links = dict(entities.links())
    return Tables(
        candidates=candidates,
        priors=priors.astype(np.float32),
        tokens=Lists.of([text.tokens for text in texts], np.uint32),
        title_lengths=np.array([text.title for text in texts]),
        masking=np.zeros(len(texts), np.float32),
        types=Lists(links[layout.TYPES], links[layout.TYPE_OFFSETS]),
        relations=Lists(links[layout.RELATIONS], links[layout.RELATION_OFFSETS]),
        objects=Lists(links[layout.OBJECTS], links[layout.RELATION_OFFSETS]),
    )


def _samples(
    found: Sequence[Context], *, aliases: Sequence[int], sentences: Sequence[int], tables: Tables
) -> MentionSamples:
    """Return samples without golds, hidden tokens and slices."""
    tokens, count = Lists.of([each.tokens for each in found], np.uint32), len(found)
    return MentionSamples(
        split=TEST,
        ids=np.arange(count),
        lengths=np.diff(tokens.offsets).astype(np.int32),
        labels=np.full(count, NOT_SCORED),
        aliases=np.array(aliases, np.int64),
        spans=np.array([(each.first, each.last) for each in found], np.int64).reshape(count, 2),
        sentences=np.array(sentences, np.int64),
        masking=np.zeros(count, np.float32),
        members=np.zeros((count, 0), bool),
        tokens=tokens,
        tables=tables,
        database=Path(),
    )
