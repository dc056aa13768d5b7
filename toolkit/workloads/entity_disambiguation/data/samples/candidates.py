"""The candidates of aliases as tables of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from toolkit.data.ragged import Array
from toolkit.workloads.entity_disambiguation.data.samples import layout

#: The candidates of an alias that are kept, with scores, the most popular first.
CandidatesOf = Callable[[str], Sequence[tuple[str, float]]]


def candidate_tables(
    aliases: Collection[str], candidates_of: CandidatesOf, numbers: Mapping[str, int], *, no_candidate: bool
) -> tuple[Array, Array]:
    """Return the entities that aliases may mean, and the log of each one's share: [aliases, width] both.

    numbers       of the entities; -1 fills a row up
    no_candidate  whether "none of them" is the first candidate of every alias

    Of the scores, each with one added, a share is taken, so that a score of zero stays possible.
    """
    first = int(no_candidate)
    width = first + max((len(candidates_of(alias)) for alias in aliases), default=1)
    entities = np.full((len(aliases), width), layout.NO_ENTITY)
    priors = np.zeros(entities.shape)
    entities[:, :first] = layout.NONE_OF_THEM
    for number, alias in enumerate(aliases):
        found = candidates_of(alias)
        total = first + sum(max(score, 0.0) + 1.0 for _, score in found)
        priors[number, :first] = -math.log(total)
        for place, (qid, score) in enumerate(found, start=first):
            entities[number, place] = numbers[qid]
            priors[number, place] = math.log((max(score, 0.0) + 1.0) / total)
    return entities, priors
