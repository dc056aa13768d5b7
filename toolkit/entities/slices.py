"""Slices of mentions by how often training has seen their gold: head, torso, tail, unseen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]

_FILTERS = ("", "NS_", "NPOP_")
_RANGES = ("all", "HD", "TO", "TL", "TS")
#: Names of the slices that are built of counts.
BUILT_SLICES = tuple(f"unif_{kept}{seen}" for kept in _FILTERS for seen in _RANGES)

TORSO_ABOVE = 10
HEAD_ABOVE = 1000
#: A mention belongs to a slice of its line when it does so with more than this probability.
MEMBER_ABOVE = 0.5


def built_slices(
    count: npt.NDArray[np.integer],
    candidates: npt.NDArray[np.integer],
    is_popular: Bools,
    *,
    torso_above: int = TORSO_ABOVE,
    head_above: int = HEAD_ABOVE,
) -> dict[str, Bools]:
    """Return the members of every built slice: name -> [n].

    count       [n] how often the gold was a label in training
    candidates  [n] how many candidates the alias has
    is_popular  [n] whether the gold is the first of them

    HD: seen more than `head_above` times; TO: more than `torso_above` up to that; TL: at most
    `torso_above`, which includes TS: never; all: however often. NS_ keeps mentions with a choice of
    more than one candidate, NPOP_ those whose gold is not the first one.
    """
    kept = {"": np.ones(len(count), bool), "NS_": candidates > 1, "NPOP_": ~is_popular}
    seen = {
        "all": kept[""],
        "HD": count > head_above,
        "TO": (count > torso_above) & (count <= head_above),
        "TL": count <= torso_above,
        "TS": count == 0,
    }
    return {f"unif_{a}{b}": kept[a] & seen[b] for a in _FILTERS for b in _RANGES}
