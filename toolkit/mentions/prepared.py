"""The prepared set of mentions: built once per content and settings, then mapped into memory.

<prepared_dir>/<name>-<key>/     complete or absent, never half
    samples.sqlite               sentences, mentions, entities, candidates, slices, results: for people
    *.bin                        flat arrays (layout.py), for training
    tokenizer.json …             the pretrained tokenizer with the markers
    meta.json                    counts, settings, fingerprint, size and checksum of every file
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.config.kinds import EntityMentions
from toolkit.data.lists import Array, Lists
from toolkit.data.publish import publish_once
from toolkit.data.sealed import map_array, read_seal
from toolkit.data.sources import Progress, folder_name
from toolkit.entities.database import EntityDatabase
from toolkit.entities.division import TEST
from toolkit.errors import DataError
from toolkit.mentions import layout
from toolkit.mentions.build import Base, build
from toolkit.mentions.entity_tables import Names
from toolkit.mentions.samples import MentionSamples
from toolkit.mentions.sources import SentenceFile, describe, find_files
from toolkit.mentions.tables import Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionSet:
    """An opened prepared set.

    meta   the manifest
    built  whether the call that returned this made it, rather than found it
    """

    path: Path
    meta: Mapping[str, Any]
    tables: Tables
    built: bool = False

    @classmethod
    def open(cls, path: Path) -> MentionSet:
        """Open a set and check that its files are there in full size. Raises DataError."""
        # Runs add their results to the database.
        meta = read_seal(path, layout.VERSION, growing=layout.DATABASE)
        return cls(path=path, meta=meta, tables=Tables.open(path, meta))

    @property
    def fingerprint(self) -> str:
        """Names the content: SHA-256 of files, database, tokenizer and every setting that matters."""
        return str(self.meta["fingerprint"])

    @property
    def splits(self) -> Mapping[str, int]:
        """Samples of each split."""
        return dict(self.meta["splits"])

    @property
    def slices(self) -> tuple[str, ...]:
        """The slices that evaluations score: the columns of `MentionSamples.members`."""
        return tuple(self.meta["slices"])

    @property
    def no_candidate(self) -> bool:
        """Whether "none of them" stands at place 0 of all candidates."""
        return bool(self.meta["no_candidate"])

    @property
    def width(self) -> int:
        """Most candidates of a mention, "none of them" included."""
        return int(self.meta["width"])

    @property
    def tokenizer_files(self) -> tuple[Path, ...]:
        """The tokenizer with its markers, as a model's folder holds it."""
        return tuple(self.path / name for name in sorted(self.meta["files"]) if name.endswith(".json"))

    def summary(self) -> str:
        """What it holds and what was left out, for people."""
        meta = self.meta
        counts = ", ".join(f"{name} {count:,}" for name, count in self.splits.items())
        state = "prepared" if self.built else "was prepared before"
        facts = f"{meta['sentences']:,} sentences, {meta['entities']:,} entities; {self.path}"
        lines = [f"{state}: {counts} mentions from {facts}"]
        for reason, count in meta["left_out"].items():
            lines.append(f"left out of training: {count:,} ({reason})")
        for name, problem in (
            ("not_scored", "are not scored: their gold is unknown or a weak label"),
            ("outside", "have a gold outside their candidates: always wrong"),
        ):
            if meta[name]:
                lines.append(f"{meta[name]:,} mentions {problem}")
        for name, sizes in meta["slice_sizes"].items():
            lines.append(f"slice {name}: " + ", ".join(f"{split} {size:,}" for split, size in sizes.items()))
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The same for programs."""
        names = (
            "sentences",
            "samples",
            "splits",
            "entities",
            "not_scored",
            "outside",
            "left_out",
            "slice_sizes",
        )
        facts = {name: self.meta[name] for name in names}
        return {"path": str(self.path), "built": self.built, "fingerprint": self.fingerprint, **facts}

    def split(self, name: str) -> MentionSamples:
        """The samples of a split, in the order of the files. Raises DataError for an unknown split."""
        if name not in self.splits:
            raise DataError(f"{self.path} has no split {name!r}, only {', '.join(self.splits)}")
        ids = self._map(layout.split_file(name), layout.OFFSET_DTYPE)
        offsets = self._map(layout.OFFSETS, layout.OFFSET_DTYPE)
        arrays = {
            "lengths": (offsets[ids + 1] - offsets[ids]).astype(np.int32),
            "labels": self._map(layout.LABELS, layout.PLACE_DTYPE)[ids].astype(np.int64),
            "aliases": self._map(layout.ALIASES, layout.ID_DTYPE)[ids],
            "spans": self._map(layout.SPANS, layout.PLACE_DTYPE).reshape(-1, 2)[ids].astype(np.int64),
            "sentences": self._map(layout.SENTENCES, layout.OFFSET_DTYPE)[ids],
            "masking": self._map(layout.MASKING, layout.FLOAT_DTYPE)[ids],
            "members": self._map(layout.MEMBERS, layout.BIT_DTYPE).reshape(-1, len(self.slices))[ids] > 0
            if self.slices
            else np.zeros((len(ids), 0), dtype=bool),
        }
        for array in arrays.values():
            array.setflags(write=False)
        flat = Lists(self._map(layout.TOKENS, self.meta["token_dtype"]), offsets)
        return MentionSamples(
            split=name,
            ids=ids,
            tokens=flat,
            tables=self.tables,
            database=self.path / layout.DATABASE,
            **arrays,
        )

    def _map(self, name: str, dtype: str) -> Array:
        return map_array(self.path / name, dtype)

    def base(self) -> Base:
        """What a model that was trained on this knows, for other files that it is scored on."""
        uri = f"{(self.path / layout.DATABASE).absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            counts = Counter(dict(connection.execute("SELECT gold, count FROM counts").fetchall()))
        types, relations = (
            Names({name: number for number, name in enumerate(self.meta[key], start=1)}, closed=True)
            for key in ("types", "relations")
        )
        return Base(counts=counts, types=types, relations=relations, is_new=False)


def prepare(
    data: EntityMentions,
    progress: Progress | None = None,
    *,
    base: MentionSet | None = None,
    lock_timeout_s: float = 3600.0,
) -> MentionSet:
    """Open the prepared set of a data section, building it first where there is none.

    Any number of processes may call this at once: one builds, the others wait while it lives.
    With `base`, the set that a model was trained on, `data.path` is a file to be scored: all of it is the
    split `test`, and slices, types and relations are those that training has seen.
    Raises DataError, which says what to do; nothing is left behind then.
    """
    report = progress or (lambda stage, done, total: None)
    files = find_files(data, report) if base is None else (SentenceFile.open(str(data.path), TEST, report),)
    description = describe(data, files, base.fingerprint if base else None)
    path = Path(data.prepared_dir).expanduser() / folder_name(files, description["fingerprint"])

    def is_ready() -> bool:
        return _opened(path, description["fingerprint"]) is not None

    def fill(folder: Path) -> None:
        database = EntityDatabase.load(Path(data.entity_db).expanduser())
        build(folder, data, files, database, description, base.base() if base else Base(), report)

    built = publish_once(path, fill, is_ready, lock_timeout_s)
    return replace(MentionSet.open(path), built=built)


def _opened(path: Path, fingerprint: str) -> MentionSet | None:
    """The set, if it is there, whole, and made from this very content."""
    try:
        found = MentionSet.open(path)
    except DataError as error:
        if isinstance(error.__cause__, PermissionError):
            # Somebody else's private set is not a damaged one: building would remove it.
            raise
        return None
    return found if found.fingerprint == fingerprint else None
