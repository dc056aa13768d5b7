"""Entities and the aliases that may mean them: the folder entity_db."""

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

    It is read as a whole; additions and removals are in memory until it is saved. Ids of entities are
    texts, not only those of Wikidata. A relation may lead to an entity that the database lacks.
    """

    def __init__(self, contents: Contents | None = None) -> None:
        self._held = contents or Contents()
        self._aliases: dict[str, set[str]] | None = None

    @classmethod
    def load(cls, folder: Path) -> EntityDatabase:
        """Read a folder. Raises DataError that names file and key."""
        return cls(read_folder(folder))

    def save(self, folder: Path) -> None:
        """Write a folder, in place of the one that is there; never half. Raises DataError, OSError."""
        write_folder(folder, self._held)

    @property
    def limits(self) -> Limits:
        return self._held.limits

    def candidates(self, alias: str) -> Sequence[tuple[str, float]]:
        """Return entity ids with scores, by (score, id) descending, at most max_candidates.

        The alias is looked up as written, then normalised; () for an unknown one.
        """
        key = self._key(alias)
        return () if key is None else self._held.candidates[key]

    def has_alias(self, alias: str) -> bool:
        return self._key(alias) is not None

    def check_aliases(self, sentence: Sentence, path: Path) -> None:
        """Raise DataError, naming file and line, at an alias of a sentence that has no candidates."""
        for place, mention in enumerate(sentence.mentions):
            if not self.candidates(mention.alias):
                is_empty = self.has_alias(mention.alias)
                found = "has no candidates" if is_empty else "is not"
                raise DataError(
                    f"{path}:{sentence.line}: aliases[{place}] {mention.alias!r} {found} in the database; "
                    "add it to the mentions of an entity (`stk entities update`), or take the mention out"
                )

    def _key(self, alias: str) -> str | None:
        held = self._held.candidates
        return next((key for key in (alias, normalise(alias)) if key in held), None)

    def __contains__(self, qid: str) -> bool:
        return qid in self._held.titles

    def __len__(self) -> int:
        return len(self._held.titles)

    @property
    def alias_count(self) -> int:
        return len(self._held.candidates)

    @property
    def relation_count(self) -> int:
        return sum(map(len, self._held.relations.values()))

    @property
    def type_systems(self) -> Sequence[str]:
        """Names of the type systems, sorted."""
        return sorted(self._held.types)

    @property
    def entity_ids(self) -> Sequence[str]:
        """Ids of all entities, sorted."""
        return sorted(self._held.titles)

    def title(self, qid: str) -> str:
        """Return the title of an entity. Raises KeyError where the database lacks the entity."""
        return self._held.titles[qid]

    def description(self, qid: str) -> str:
        """Return the description of an entity; empty if it has none."""
        return self._held.descriptions.get(qid, "")

    def types(self, qid: str) -> Mapping[str, Sequence[str]]:
        """Return the names of the types of an entity by type system, at most max_types of each."""
        return {system: of[qid] for system, of in sorted(self._held.types.items()) if of.get(qid)}

    def relations(self, qid: str) -> Sequence[tuple[str, str]]:
        """Return (relation, entity id of the object), at most max_connections."""
        return self._held.relations.get(qid, ())

    def aliases(self, qid: str) -> Sequence[str]:
        """Return the aliases that may mean an entity, sorted."""
        return sorted(self._index().get(qid, ()))

    def profile(self, qid: str) -> Profile:
        """Return what is known of an entity. Raises DataError where the database lacks it."""
        self._check_known(qid)
        scores = ((alias, dict(self._held.candidates[alias])[qid]) for alias in self.aliases(qid))
        return Profile(
            entity_id=qid,
            title=self.title(qid),
            description=self.description(qid),
            mentions=tuple(sorted(scores, key=lambda each: (-each[1], each[0]))),
            types={system: tuple(names) for system, names in self.types(qid).items()},
            relations=tuple(self.relations(qid)),
        )

    def profiles(self) -> Iterator[Profile]:
        """Yield all profiles by id."""
        return map(self.profile, self.entity_ids)

    def add(self, profile: Profile) -> None:
        """Add an entity. Raises DataError where the database has that id already."""
        qid, held = profile.entity_id, self._held
        if qid in held.titles:
            raise DataError(f"{qid} is in the database already ({self.title(qid)}); to replace it, update it")
        held.titles[qid] = profile.title
        if profile.description:
            held.descriptions[qid] = profile.description
        for system, names in profile.types.items():
            if names:
                held.types.setdefault(system, {})[qid] = list(names[: self.limits.max_types])
        if profile.relations:
            held.relations[qid] = _ordered(profile.relations[: self.limits.max_connections])
        for alias, score in dict(profile.mentions).items():
            self._add_candidate(alias, qid, score)

    def _add_candidate(self, alias: str, qid: str, score: float) -> None:
        candidates = self._held.candidates.setdefault(alias, [])
        candidates.append((qid, score))
        by_score(candidates)
        # The index is kept up: building it again for each of many updates would take minutes.
        if self._aliases is not None:
            self._aliases.setdefault(qid, set()).add(alias)
            for lost, _ in candidates[self.limits.max_candidates :]:
                self._aliases[lost].discard(alias)
        del candidates[self.limits.max_candidates :]

    def update(self, profile: Profile) -> None:
        """Replace all that is known of an entity. Raises DataError where the database lacks it."""
        self._check_known(profile.entity_id)
        self._forget(profile.entity_id)
        self.add(profile)

    def remove(self, qid: str) -> None:
        """Remove an entity, its aliases that mean no other, and the relations that lead to it.

        Raises DataError where the database lacks it.
        """
        self._check_known(qid)
        self._forget(qid)
        kept = ((of, [x for x in pairs if x[1] != qid]) for of, pairs in self._held.relations.items())
        self._held.relations = {of: pairs for of, pairs in kept if pairs}

    def _forget(self, qid: str) -> None:
        held = self._held
        for alias in self.aliases(qid):
            held.candidates[alias] = [each for each in held.candidates[alias] if each[0] != qid]
            if not held.candidates[alias]:
                del held.candidates[alias]
        for table in (held.titles, held.descriptions, held.relations, *held.types.values()):
            table.pop(qid, None)  # type: ignore[attr-defined]
        self._index().pop(qid, None)

    def _check_known(self, qid: str) -> None:
        if qid not in self:
            raise DataError(f"the database has no entity {qid}")

    def _index(self) -> dict[str, set[str]]:
        if self._aliases is None:
            self._aliases = {}
            for alias, candidates in self._held.candidates.items():
                for qid, _ in candidates:
                    self._aliases.setdefault(qid, set()).add(alias)
        return self._aliases


def _ordered(relations: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Put relations of the same name side by side, as the files keep them."""
    names = list(dict.fromkeys(name for name, _ in relations))
    return sorted(relations, key=lambda each: names.index(each[0]))


def import_profiles(
    path: Path, limits: Limits | None = None, *, pids: Pids = "refuse", as_written: bool = False
) -> EntityDatabase:
    """Make a database of a file of profiles. Raises DataError that names file and line."""
    database = EntityDatabase(Contents(limits=limits or Limits()))
    for line, profile in read_profiles(path, pids=pids, as_written=as_written):
        if profile.entity_id in database:
            line.refuse(f"entity_id {profile.entity_id} is that of another line, too; an entity has one line")
        database.add(profile)
    return database


@contextmanager
def edited(folder: Path) -> Iterator[EntityDatabase]:
    """Give a database to be changed; it is saved afterwards unless there was an error.

    Of several that do so at once each waits for the one before. Raises DataError.
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
            f"waited {_LOCK_TIMEOUT_S:g} s for {folder}, which another process changes; try again"
        ) from None
