"""Sentences about banks, bats and cranes, and a database of what they may be."""

from __future__ import annotations

import json
import random
from pathlib import Path

from toolkit.workloads.entity_disambiguation.data.entities.database import EntityDatabase
from toolkit.workloads.entity_disambiguation.data.entities.profiles import Profile

_MEANINGS = {"bank": ("river", "money"), "bat": ("animal", "sport"), "crane": ("bird", "machine", "paper")}


def write_mentions(folder: Path) -> None:
    """Write sentences.jsonl, 300 sentences of two mentions each, and entity_db."""
    folder.mkdir(parents=True, exist_ok=True)
    database = EntityDatabase()
    for alias, meanings in _MEANINGS.items():
        for score, meaning in enumerate(meanings):
            profile = Profile(
                entity_id=f"{alias}-{meaning}",
                title=f"{alias} ({meaning})",
                description=f"what has to do with {meaning}",
                mentions=((alias, float(score)),),
                types={"kind": (meaning,)},
            )
            database.add(profile)
    database.save(folder / "entity_db")
    choice = random.Random(0)
    lines = [json.dumps(_sentence(number, choice)) for number in range(300)]
    (folder / "sentences.jsonl").write_text("\n".join(lines) + "\n")


def _sentence(number: int, choice: random.Random) -> dict[str, object]:
    aliases = choice.sample(sorted(_MEANINGS), 2)
    golds = [choice.choice(_MEANINGS[alias]) for alias in aliases]
    words = [aliases[0], "of", golds[0], "and", aliases[1], "of", golds[1]]
    return {
        "sent_idx_unq": number,
        "sentence": " ".join(words),
        "aliases": aliases,
        "spans": [[0, 1], [4, 5]],
        "qids": [f"{alias}-{gold}" for alias, gold in zip(aliases, golds, strict=True)],
        "gold": [True, True],
        "parent_qid": f"Q{number}",
    }
