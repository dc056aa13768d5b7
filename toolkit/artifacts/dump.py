"""Sentences as they came in, each with what a model says of its mentions: JSON lines, one at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.files import open_atomic

#: Of a probability: as much as 32-bit arithmetic knows of it.
_DIGITS = 7
#: What the list beside `aliases` is called; of an earlier dump it is replaced.
KEY = "predictions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a model says of one mention.

    qid            the likeliest candidate, the first of equals
    probability    that of it
    candidates     ids in the order of the mention's candidates
    probabilities  one for each; they sum to 1
    """

    qid: str
    probability: float
    candidates: tuple[str, ...]
    probabilities: tuple[float, ...]

    @classmethod
    def of(cls, candidates: Iterable[str], probabilities: Iterable[float]) -> Prediction:
        """Take the likeliest of at least one candidate."""
        names, values = tuple(candidates), tuple(map(float, probabilities))
        assert names, "a mention without candidates has no prediction"
        assert len(names) == len(values), "each candidate has one probability"
        likeliest = max(range(len(values)), key=values.__getitem__)
        return cls(
            qid=names[likeliest], probability=values[likeliest], candidates=names, probabilities=values
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "qid": self.qid,
            "probability": round(self.probability, _DIGITS),
            "candidates": list(self.candidates),
            "probabilities": [round(value, _DIGITS) for value in self.probabilities],
        }


#: An input line, and what is said of each of its aliases; None: nothing.
Line = tuple[Mapping[str, Any], Sequence[Prediction | None]]


def write_dump(path: Path, lines: Iterable[Line]) -> None:
    """Write each line's own keys as they stand and `predictions`, parallel to its aliases.

    A mention that was not predicted has null there. Lines keep their order; the file appears when it
    is whole.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_atomic(path) as stream:
        for record, said in lines:
            shown = [None if each is None else each.to_json() for each in said]
            stream.write(json.dumps({**record, KEY: shown}, ensure_ascii=False) + "\n")
