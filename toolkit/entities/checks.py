"""Whether sentences and a database fit each other."""

from __future__ import annotations

from pathlib import Path

from toolkit.entities.database import EntityDatabase
from toolkit.entities.sentences import Sentence
from toolkit.errors import DataError


def check_candidates(sentence: Sentence, database: EntityDatabase, path: Path) -> None:
    """Raise DataError, naming file and line, at an alias that has no candidates in the database."""
    for place, mention in enumerate(sentence.mentions):
        if database.candidates(mention.alias):
            continue
        found = (
            "has an empty list of candidates in the database"
            if database.has_alias(mention.alias)
            else "is not in the database"
        )
        raise DataError(
            f"{path}:{sentence.line}: aliases[{place}] {mention.alias!r} {found}; add it to the "
            "mentions of an entity (`stk entities update`), or take the mention out"
        )
