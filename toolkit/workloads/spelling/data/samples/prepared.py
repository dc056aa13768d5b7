"""The prepared set of texts (toolkit/data/prepared/folder.py).

Its folder also has the tokenizers and the dictionary that encoded the texts. While the set is made,
<prepared_dir>/.<name>-<key>.parts/ has the finished shards.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.data.prepared.arrays import map_array
from toolkit.data.prepared.folder import PreparedFolder
from toolkit.data.ragged import Array, Lists, protect
from toolkit.data.sources.file_digests import memory_of
from toolkit.data.sources.source_files import TEST, set_place
from toolkit.errors import DataError
from toolkit.system.output.amounts import counted
from toolkit.workload import Progress, silent
from toolkit.workloads.spelling.config.data import SpellingTexts
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.build import join, make_shards
from toolkit.workloads.spelling.data.samples.samples import SpellingSamples
from toolkit.workloads.spelling.data.samples.sources import Source, changed, describe, find_sources


@dataclass(frozen=True, kw_only=True)
class SpellingSet(PreparedFolder[SpellingSamples]):
    """An opened prepared set.

    speed  a sentence with the speed at which it was made; empty if it existed before
    """

    VERSION = layout.VERSION
    COLUMNS = (*map(layout.column, layout.DTYPES), *(layout.offsets(first) for first, *_ in layout.LISTS))
    FACTS = ("samples", "splits", "left_out", "vocabulary_size")
    speed: str = ""

    @property
    def unlabelled(self) -> Mapping[str, int]:
        """Number of texts with unknown wrong words, by split."""
        return dict(self.meta.get("unlabelled", {}))

    def _contents(self) -> str:
        return f" texts; {self.meta['vocabulary_size']:,} tokens"

    def _details(self) -> Iterator[str]:
        if self.speed:
            yield self.speed
        for reason, count in self.meta["left_out"].items():
            yield f"left out: {count:,} lines ({reason})"
        for split, count in self.unlabelled.items():
            # A file may have one label for each text.
            if count < self.splits[split]:
                yield f"wrong words not known: {count:,} texts of {split} (targets have more or fewer words)"

    def _samples(self, split: str) -> SpellingSamples:
        ids = np.flatnonzero(self._array(layout.SPLIT) == layout.SPLITS.index(split))
        lists = {}
        for group in layout.LISTS:
            offsets = map_array(self.path, layout.offsets(group[0]))
            lists.update({name: Lists(self._array(name), offsets) for name in group})
        arrays: dict[str, Any] = protect(
            ids=ids,
            lengths=lists[layout.TOKENS].lengths(ids).astype(np.int32),
            errors=self._array(layout.ERRORS)[ids].astype(np.int64),
            sources=self._array(layout.SOURCES)[ids],
            lines=self._array(layout.LINES)[ids],
        )
        return SpellingSamples(split=split, lists=lists, database=self.database, **arrays)

    def _array(self, name: str) -> Array:
        return map_array(self.path, layout.column(name).of(self.meta["dtypes"][name]))


def prepare(
    data: SpellingTexts,
    progress: Progress | None = None,
    *,
    encoding: Path | None = None,
    trained_on: str | None = None,
) -> SpellingSet:
    """Open the prepared set of a data section; make it first if it is missing.

    An interrupted preparation continues with the shards that exist.

    encoding    folder of the tokenizers and the dictionary of a trained model; `data.path` is then a file to
                be scored, and the whole file is the split `test`
    trained_on  fingerprint of the data that this model was trained on

    Raises like PreparedFolder.open_or_build.
    """
    report = progress or silent
    if encoding is None:
        sources = find_sources(data, report)
    else:
        data = layout.encoded_by(data, encoding)
        sources = (Source.open(str(data.path), TEST, report, memory_of(data)),)
    description = describe(data, sources, trained_on)
    path, fingerprint = set_place(data.prepared_dir, sources, description)
    parts = path.with_name(f".{path.name}.parts")
    speed = ""

    def fill(folder: Path) -> None:
        nonlocal speed
        workers, start = data.workers or len(os.sched_getaffinity(0)), time.monotonic()
        job, made = make_shards(parts, data, sources, workers, report)
        speed = _speed(made, time.monotonic() - start, workers)
        join(folder, job, description, report)
        # Only now: each shard has read its lines anew.
        if found := changed(data, sources, description):
            # The folder's name stands for the files before the change.
            shutil.rmtree(parts, ignore_errors=True)
            raise DataError(f"{found} changed while it was read; start again when its writer is done")

    prepared = SpellingSet.open_or_build(path, fingerprint, fill, progress)
    # Also if the set existed: the process that made it may have been killed before this line.
    shutil.rmtree(parts, ignore_errors=True)
    return replace(prepared, speed=speed)


def _speed(texts: int, seconds: float, workers: int) -> str:
    processes = "1 process" if workers == 1 else f"up to {workers} processes"
    rate = f"{texts / max(seconds, 1e-9):,.0f}/s with {processes}"
    return f"{counted(texts, 'text')} read in {seconds:.1f} s: {rate}"
