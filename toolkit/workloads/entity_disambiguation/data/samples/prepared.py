"""The prepared set of mentions (see toolkit/data/prepared/folder.py).

Its folder also holds the pretrained tokenizer with the markers: tokenizer.json and its settings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from toolkit.data.prepared.arrays import map_array, map_lists
from toolkit.data.prepared.columns import split_ids
from toolkit.data.prepared.database import reading
from toolkit.data.prepared.folder import PreparedFolder
from toolkit.data.ragged import protect
from toolkit.data.sources.file_digests import memory_of
from toolkit.data.sources.source_files import set_place
from toolkit.errors import DataError
from toolkit.workload import Progress, silent
from toolkit.workloads.entity_disambiguation.config import EntityMentions
from toolkit.workloads.entity_disambiguation.data.entities.database import EntityDatabase
from toolkit.workloads.entity_disambiguation.data.entities.division import TEST
from toolkit.workloads.entity_disambiguation.data.samples import layout
from toolkit.workloads.entity_disambiguation.data.samples.build import Base, build
from toolkit.workloads.entity_disambiguation.data.samples.known import Known
from toolkit.workloads.entity_disambiguation.data.samples.samples import MentionSamples, Tables
from toolkit.workloads.entity_disambiguation.data.samples.source_files import (
    SentenceFile,
    describe,
    find_sources,
)


class MentionSet(PreparedFolder[MentionSamples]):
    VERSION = layout.VERSION
    COLUMNS = (
        *(layout.TOKENS, layout.OFFSETS, layout.SPANS, layout.ALIASES, layout.LABELS, layout.SENTENCES),
        *(layout.MASKING, layout.MEMBERS, layout.CANDIDATES, layout.PRIORS),
        *(layout.ENTITY_TOKENS, layout.ENTITY_OFFSETS, layout.TITLE_LENGTHS, layout.ENTITY_MASKING),
        *(layout.TYPES, layout.TYPE_OFFSETS, layout.RELATIONS, layout.OBJECTS, layout.RELATION_OFFSETS),
    )
    FACTS = (
        "sentences", "samples", "splits", "entities", "not_scored", "outside", "left_out", "slice_sizes",
    )  # fmt: skip

    @cached_property
    def tables(self) -> Tables:
        """Return the tables of aliases and entities. Raises DataError."""
        return Tables.open(self.path, self.meta)

    @property
    def slices(self) -> tuple[str, ...]:
        """The scored slices, which are the columns of `MentionSamples.members`."""
        return tuple(self.meta["slices"])

    @property
    def no_candidate(self) -> bool:
        """Whether "none of the candidates" is candidate 0 of every mention."""
        return bool(self.meta["no_candidate"])

    @property
    def tokenizer_files(self) -> tuple[Path, ...]:
        """The files of the tokenizer with its markers."""
        return tuple(self.path / name for name in sorted(self.meta["files"]) if name.endswith(".json"))

    def _contents(self) -> str:
        return f" mentions from {self.meta['sentences']:,} sentences, {self.meta['entities']:,} entities"

    def _details(self) -> Iterator[str]:
        for reason, count in self.meta["left_out"].items():
            yield f"left out of training: {count:,} ({reason})"
        for name, problem in (
            ("not_scored", "are not scored: their gold is unknown or a weak label"),
            ("outside", "have a gold outside their candidates: always wrong"),
        ):
            if self.meta[name]:
                yield f"{self.meta[name]:,} mentions {problem}"
        for name, sizes in self.meta["slice_sizes"].items():
            yield f"slice {name}: " + ", ".join(f"{split} {size:,}" for split, size in sizes.items())

    def _samples(self, split: str) -> MentionSamples:
        ids = map_array(self.path, split_ids(split))
        tokens = map_lists(self.path, layout.TOKENS.of(self.meta["token_dtype"]), layout.OFFSETS)
        members = map_array(self.path, layout.MEMBERS).reshape(len(tokens.offsets) - 1, len(self.slices))
        arrays = protect(
            lengths=tokens.lengths(ids).astype(np.int32),
            labels=map_array(self.path, layout.LABELS)[ids].astype(np.int64),
            aliases=map_array(self.path, layout.ALIASES)[ids],
            spans=map_array(self.path, layout.SPANS)[ids].astype(np.int64),
            sentences=map_array(self.path, layout.SENTENCES)[ids],
            masking=map_array(self.path, layout.MASKING)[ids],
            members=members[ids] > 0,
        )
        return MentionSamples(
            split=split, ids=ids, tokens=tokens, tables=self.tables, database=self.database, **arrays
        )

    def base(self) -> Base:
        """Return the properties of a model that was trained on this set, for scoring other files."""
        with reading(self.database) as connection:
            counts = Counter(dict(connection.execute("SELECT gold, count FROM counts").fetchall()))
        return Base(fingerprint=self.fingerprint, counts=counts, known=Known.of(self.meta))


def prepare(
    data: EntityMentions, progress: Progress | None = None, *, base: Base | None = None
) -> MentionSet:
    """Open the prepared set of a data section; build it first if it is missing.

    With `base` (of a trained model), all of the file `data.path` is the split `test`, and counts, types and
    relations are those of training. Raises like PreparedFolder.open_or_build.
    """
    report = progress or silent
    scored = partial(SentenceFile.open, str(data.path), TEST, report, memory_of(data))
    files = find_sources(data, report) if base is None else (scored(),)
    description = describe(data, files, base.fingerprint if base else None)

    def fill(folder: Path) -> None:
        database = EntityDatabase.load(Path(data.entity_db).expanduser())
        build(folder, data, files, database, description, base, report)
        if describe(data, files, description["base"]) != description:
            raise DataError(
                f"{data.entity_db} or the tokenizer {data.tokenizer_path} changed while it was read; start "
                "again when its writer is done"
            )

    return MentionSet.open_or_build(*set_place(data.prepared_dir, files, description), fill, progress)
