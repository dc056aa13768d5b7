"""Small files of sentences and profiles."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def record(**changes: Any) -> dict[str, Any]:
    """A line with two mentions; a change to None removes the key."""
    line = {
        "sentence": "Prikro is in Ivory Coast , not in Vietnam .",
        "sent_idx_unq": 7,
        "aliases": ["ivory coast", "vietnam"],
        "spans": [[3, 5], [8, 9]],
        "qids": ["Q1008", "Q881"],
        "gold": [True, False],
        "parent_qid": "Q3403125",
        "parent_title": "Prikro",
    }
    return {key: value for key, value in (line | changes).items() if value is not None}


def write(path: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    return path


PROFILES = [
    {
        "entity_id": "Q1008",
        "title": "Ivory Coast",
        "description": "a country",
        "mentions": [["Ivory Coast", 9], ["Côte d'Ivoire", 8.5]],
        "types": {"wiki": ["sovereign state", "country"]},
        "relations": [
            {"relation": "borders", "object": "Q912"},
            {"relation": "capital", "object": "Q3768"},
            {"relation": "borders", "object": "Q1020"},
        ],
    },
    {"entity_id": "Q881", "title": "Vietnam", "mentions": [["vietnam", 5]]},
    {
        "entity_id": "Q180573",
        "title": "South Vietnam",
        "mentions": [["vietnam", 3], ["south vietnam", 4]],
        "relations": [{"relation": "replaced by", "object": "Q881"}],
    },
]
