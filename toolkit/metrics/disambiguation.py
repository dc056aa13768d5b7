"""Scores of a choice among candidates: whole numbers that add up, divided once.

A label is a place in the list of candidates of a mention. NOT_SCORED: the gold is unknown or a weak
label; OUTSIDE: the gold is not among the candidates, which nobody can predict. With a class for "no
candidate" that class stands at place 0, and is the gold where OUTSIDE would be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from toolkit.metrics.slice_score import SliceScore, ratio

NOT_SCORED = -1
OUTSIDE = -2

Places = npt.NDArray[np.integer]


def score(
    golds: Places, predictions: Places, members: npt.NDArray[np.bool_], *, no_candidate: bool = False
) -> SliceScore:
    """Count the mentions of a slice and those that are right; all arguments [n].

    Without a class for "no candidate" a gold outside the candidates is wrong, whatever is predicted.
    """
    counted = members & (golds != NOT_SCORED)
    not_nc = counted & (golds != (0 if no_candidate else OUTSIDE))
    right = (predictions == golds) & (golds != OUTSIDE)
    popular = golds == (1 if no_candidate else 0)
    return SliceScore(
        mentions=_count(counted),
        mentions_not_nc=_count(not_nc),
        correct=_count(counted & right),
        correct_not_nc=_count(not_nc & right),
        popular=_count(counted & popular),
        popular_not_nc=_count(not_nc & popular),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkingScore:
    """Mentions found and linked in running text, against those that are there.

    matched  found ones that are at the place of a gold mention and name its entity
    """

    found: int
    expected: int
    matched: int

    @property
    def precision(self) -> float:
        return ratio(self.matched, self.found)

    @property
    def recall(self) -> float:
        return ratio(self.matched, self.expected)

    @property
    def f1(self) -> float:
        return ratio(2 * self.matched, self.found + self.expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A mention with its entity: start and exclusive end in the text, and how sure its finder is."""

    start: int
    end: int
    entity: str
    probability: float = 1.0


def score_links(
    found: list[list[Link]], expected: list[list[Link]], *, exact: bool = False, threshold: float = 0.0
) -> LinkingScore:
    """Score what was found in each of several texts; both lists have an entry for each text.

    exact      a mention is at the place of another where both ends agree; otherwise where they overlap
    threshold  what was found with a lower probability is left out

    Each expected mention is matched at most once, the surest first.
    """
    kept = [[link for link in links if link.probability >= threshold] for links in found]
    return LinkingScore(
        found=sum(map(len, kept)),
        expected=sum(map(len, expected)),
        matched=sum(_matched(a, b, exact) for a, b in zip(kept, expected, strict=True)),
    )


def _matched(found: list[Link], expected: list[Link], exact: bool) -> int:
    left = list(expected)
    for link in sorted(found, key=lambda each: -each.probability):
        match = next((each for each in left if _agree(link, each, exact)), None)
        if match is not None:
            left.remove(match)
    return len(expected) - len(left)


def _agree(one: Link, other: Link, exact: bool) -> bool:
    if one.entity != other.entity:
        return False
    if exact:
        return (one.start, one.end) == (other.start, other.end)
    return one.start < other.end and other.start < one.end


def _count(which: npt.NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(which))
