"""The database of entities and aliases (the folder entity_db)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from toolkit.errors import DataError
from toolkit.workloads.entity_disambiguation.data.entities.contents import Contents, Limits, by_score
from toolkit.workloads.entity_disambiguation.data.entities.profiles import (
    Pids,
    Profile,
    normalise,
    read_profiles,
)
from toolkit.workloads.entity_disambiguation.data.entities.read_folder import check_folder, read_folder
from toolkit.workloads.entity_disambiguation.data.entities.sentences import Sentence
from toolkit.workloads.entity_disambiguation.data.entities.write_folder import write_folder

_LOCK_TIMEOUT_S = 60.0


class EntityDatabase:
    """Candidates of aliases; titles, descriptions, types and relations of entities.

    The whole database is in memory, and changes stay in memory until it is saved. Ids of entities are any
    texts, such as those of Wikidata. The object of a relation may be missing in the database.
    """

    def __init__(self, contents: Contents | None = None) -> None:
        self.contents = contents or Contents()
        self._aliases: dict[str, set[str]] | None = None

    @classmethod
    def load(cls, folder: Path) -> EntityDatabase:
        """Read a folder. Raises DataError with file and key."""
        return cls(read_folder(folder))

    def save(self, folder: Path) -> None:
        """Write a folder completely, and replace an existing one. Raises DataError, OSError."""
        write_folder(folder, self.contents)

    def candidates(self, alias: str) -> Sequence[tuple[str, float]]:
        """Return entity ids with scores, by score and id descending, at most max_candidates.

        The alias is looked up unchanged, then normalised. An unknown alias has no candidates.
        """
        key = self._key(alias)
        return () if key is None else self.contents.candidates[key]

    def has_alias(self, alias: str) -> bool:
        return self._key(alias) is not None

    def check_aliases(self, sentence: Sentence, path: Path) -> None:
        """Raise DataError with file and line if an alias of a sentence has no candidates."""
        for place, mention in enumerate(sentence.mentions):
            if not self.candidates(mention.alias):
                found = "has no candidates" if self.has_alias(mention.alias) else "is not"
                raise DataError(
                    f"{path}:{sentence.line}: aliases[{place}] {mention.alias!r} {found} in the database; "
                    "add it to the mentions of an entity (`stk entities update`), or take the mention out"
                )

    def _key(self, alias: str) -> str | None:
        candidates = self.contents.candidates
        return next((key for key in (alias, normalise(alias)) if key in candidates), None)

    def __contains__(self, qid: str) -> bool:
        return qid in self.contents.titles

    def __len__(self) -> int:
        return len(self.contents.titles)

    @property
    def entity_ids(self) -> Sequence[str]:
        """The ids of all entities, sorted."""
        return sorted(self.contents.titles)

    def title(self, qid: str) -> str:
        """Return the title of an entity. Raises KeyError if the database does not have the entity."""
        return self.contents.titles[qid]

    def description(self, qid: str) -> str:
        """Return the description of an entity; empty if it has none."""
        return self.contents.descriptions.get(qid, "")

    def types(self, qid: str) -> Mapping[str, Sequence[str]]:
        """Return the names of an entity's types by type system, at most max_types of each."""
        return {system: of[qid] for system, of in sorted(self.contents.types.items()) if of.get(qid)}

    def relations(self, qid: str) -> Sequence[tuple[str, str]]:
        """Return an entity's relations as (name, entity id of the object), at most max_connections."""
        return self.contents.relations.get(qid, ())

    def aliases(self, qid: str) -> Sequence[str]:
        """Return the aliases with this entity as a candidate, sorted."""
        return sorted(self._index().get(qid, ()))

    def profile(self, qid: str) -> Profile:
        """Return all data of an entity. Raises DataError if it is not in the database."""
        self._check_known(qid)
        scores = ((alias, dict(self.contents.candidates[alias])[qid]) for alias in self.aliases(qid))
        return Profile(
            entity_id=qid,
            title=self.title(qid),
            description=self.description(qid),
            mentions=tuple(sorted(scores, key=lambda each: (-each[1], each[0]))),
            types={system: tuple(names) for system, names in self.types(qid).items()},
            relations=tuple(self.relations(qid)),
        )

    def profiles(self) -> Iterator[Profile]:
        """Yield the profiles of all entities, sorted by id."""
        return map(self.profile, self.entity_ids)

    def add(self, profile: Profile) -> None:
        """Add an entity. Raises DataError if the database already has its id."""
        qid, contents = profile.entity_id, self.contents
        if qid in contents.titles:
            raise DataError(f"{qid} is in the database already ({self.title(qid)}); to replace it, update it")
        contents.titles[qid] = profile.title
        if profile.description:
            contents.descriptions[qid] = profile.description
        for system, names in profile.types.items():
            if names:
                contents.types.setdefault(system, {})[qid] = list(names[: self.contents.limits.max_types])
        if profile.relations:
            contents.relations[qid] = _ordered(profile.relations[: self.contents.limits.max_connections])
        for alias, score in dict(profile.mentions).items():
            self._add_candidate(alias, qid, score)

    def _add_candidate(self, alias: str, qid: str, score: float) -> None:
        candidates = self.contents.candidates.setdefault(alias, [])
        candidates.append((qid, score))
        by_score(candidates)
        # The index is updated, not rebuilt: many updates would take minutes.
        if self._aliases is not None:
            self._aliases.setdefault(qid, set()).add(alias)
            for lost, _ in candidates[self.contents.limits.max_candidates :]:
                self._aliases[lost].discard(alias)
        del candidates[self.contents.limits.max_candidates :]

    def update(self, profile: Profile) -> None:
        """Replace all data of an entity. Raises DataError if it is not in the database."""
        self._check_known(profile.entity_id)
        self._remove_data(profile.entity_id)
        self.add(profile)

    def remove(self, qid: str) -> None:
        """Remove an entity, aliases without other candidates, and relations to the entity.

        Raises DataError if it is not in the database.
        """
        self._check_known(qid)
        self._remove_data(qid)
        kept = ((of, [x for x in pairs if x[1] != qid]) for of, pairs in self.contents.relations.items())
        self.contents.relations = {of: pairs for of, pairs in kept if pairs}

    def _remove_data(self, qid: str) -> None:
        contents = self.contents
        for alias in self.aliases(qid):
            contents.candidates[alias] = [each for each in contents.candidates[alias] if each[0] != qid]
            if not contents.candidates[alias]:
                del contents.candidates[alias]
        for table in (contents.titles, contents.descriptions, contents.relations, *contents.types.values()):
            table.pop(qid, None)  # type: ignore[attr-defined]
        self._index().pop(qid, None)

    def _check_known(self, qid: str) -> None:
        if qid not in self:
            raise DataError(f"the database has no entity {qid}")

    def _index(self) -> dict[str, set[str]]:
        if self._aliases is None:
            self._aliases = {}
            for alias, candidates in self.contents.candidates.items():
                for qid, _ in candidates:
                    self._aliases.setdefault(qid, set()).add(alias)
        return self._aliases


def _ordered(relations: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Group relations by name, as in the files."""
    names = list(dict.fromkeys(name for name, _ in relations))
    return sorted(relations, key=lambda each: names.index(each[0]))


def import_profiles(
    path: Path, limits: Limits | None = None, *, pids: Pids = "refuse", as_written: bool = False
) -> EntityDatabase:
    """Make a database from a file of profiles. Raises DataError with file and line."""
    database = EntityDatabase(Contents(limits=limits or Limits()))
    for line, profile in read_profiles(path, pids=pids, as_written=as_written):
        if profile.entity_id in database:
            line.refuse(f"entity_id {profile.entity_id} is also that of another line; an entity has one line")
        database.add(profile)
    return database


@contextmanager
def edited(folder: Path) -> Iterator[EntityDatabase]:
    """Load a database for changes, and save it afterwards unless there was an error.

    Concurrent editors wait for each other. Raises DataError.
    """
    check_folder(folder)
    lock = FileLock(folder.with_name(f".{folder.name}.lock"), timeout=_LOCK_TIMEOUT_S, mode=0o664)
    try:
        with lock:
            database = EntityDatabase.load(folder)
            yield database
            database.save(folder)
    except Timeout:
        raise DataError(
            f"waited {_LOCK_TIMEOUT_S:g} s for {folder}, which another process is changing; try again"
        ) from None
