"""Writing a prepared set of texts: shards in parallel, then one after the other into flat arrays."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from toolkit.config.kinds import SpellingTexts
from toolkit.data.layout import token_dtype
from toolkit.data.sealed import seal, write_array
from toolkit.data.sources import Progress
from toolkit.errors import DataError
from toolkit.spelling.words import words_of
from toolkit.spelling_samples import layout
from toolkit.spelling_samples.pool import make_all
from toolkit.spelling_samples.shards import Job, Made, Shard, ShardMaker, read_shard
from toolkit.spelling_samples.sources import Source
from toolkit.tokenization.tokenizer import load_tokenizer

STAGE = "make samples"
_SAMPLE = "INSERT INTO samples VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_LEFT_OUT = "INSERT INTO left_out VALUES (?, ?, ?, ?, ?, ?, ?)"


def make_shards(
    parts: Path, data: SpellingTexts, sources: tuple[Source, ...], workers: int, progress: Progress
) -> tuple[Job, int]:
    """Make the shards that are not there yet; return the job, and how many texts were read for it.

    Raises DataError, OSError; what is done stays, and the next call goes on.
    """
    parts.mkdir(exist_ok=True)
    job = Job.plan(parts, data, sources)
    for source in sources:
        source.check_unchanged()
    every = list(job.shards())
    missing = [shard for shard in every if not shard.file(parts).exists()]
    total = _size(every)
    made = total - _size(missing)
    progress(STAGE, made, total)

    def done(shard: Shard) -> None:
        nonlocal made
        made += _size([shard])
        progress(STAGE, made, total)

    make_all(job, missing, workers, done)
    return job, _size(missing)


def _size(shards: Sequence[Shard]) -> int:
    return sum(shard.last - shard.first for shard in shards)


def join(folder: Path, job: Job, description: dict[str, Any], progress: Progress) -> None:
    """Write a whole prepared set into an empty folder and flush it to disk; the manifest comes last.

    Raises DataError where there is nothing for training or validation, OSError and sqlite3.Error where
    writing fails.
    """
    data = job.data
    tokenizer = load_tokenizer(Path(data.tokenizer_path))
    output = load_tokenizer(Path(data.output_tokenizer_path)) if data.output_tokenizer_path else None
    dtypes = dict(layout.DTYPES)
    dtypes[layout.TOKENS] = token_dtype(len(tokenizer))
    dtypes[layout.OUTPUTS] = token_dtype(len(output)) if output else "<u2"
    # The folder is nobody else's yet: no locks, which network file systems may lack, and no journal.
    uri = f"{(folder / layout.DATABASE).absolute().as_uri()}?mode=rwc&nolock=1"
    with ExitStack() as stack:
        connection = stack.enter_context(closing(sqlite3.connect(uri, uri=True, isolation_level=None)))
        connection.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN; {layout.SCHEMA}")
        _write_sources(connection, job)
        streams = {name: stack.enter_context(open(folder / layout.array_file(name), "wb")) for name in dtypes}
        joined = _Joined(job=job, dtypes=dtypes, streams=streams, connection=connection)
        for number, shard in enumerate(shards := list(job.shards()), start=1):
            joined.add(shard, _read(job, shard))
            progress("join shards", number, len(shards))
        connection.execute("COMMIT")
        connection.executescript(layout.INDICES)
    _check_splits(job, joined.splits)
    for group, lengths in joined.lengths.items():
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate([_NONE, *lengths]))])
        write_array(folder / layout.offsets_file(group), offsets.astype(layout.OFFSET_DTYPE))
    _copy(data, folder)
    seal(folder, description | {
        "samples": joined.count,
        "splits": {name: joined.splits[name] for name in layout.SPLITS if joined.splits[name]},
        "left_out": {reason: joined.left_out[reason] for reason in sorted(joined.left_out)},
        "dtypes": dtypes,
        "vocabulary_size": len(tokenizer),
        "pad_id": tokenizer.padding,
        "output_vocabulary_size": None if output is None else len(output),
        "has_dictionary": data.dictionary is not None,
    })  # fmt: skip


_NONE = np.zeros(0, np.int64)


@dataclass(slots=True, kw_only=True)
class _Joined:
    """What is written shard by shard; memory: lengths of the lists of each sample."""

    job: Job
    dtypes: dict[str, str]
    streams: Mapping[str, BinaryIO]
    connection: sqlite3.Connection
    count: int = 0
    splits: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    lengths: dict[str, list[npt.NDArray[np.int64]]] = field(
        default_factory=lambda: {group[0]: [] for group in layout.LISTS}
    )

    def add(self, shard: Shard, made: Made) -> None:
        numbers = {
            layout.ERRORS: made.errors, layout.LINES: made.lines, layout.SPLIT: made.splits,
            layout.SOURCES: np.full(len(made.lines), shard.source),
        }  # fmt: skip
        for name, values in {**made.lists, **numbers}.items():
            self.streams[name].write(values.astype(self.dtypes[name]).data)
        for group, lengths in made.lengths.items():
            self.lengths[group].append(lengths)
        self.connection.executemany(_SAMPLE, self._rows(shard.source, made))
        for line, split, text, tokens, reason in made.left_out:
            row = (shard.source, line + 1, layout.SPLITS[split], text, tokens, len(words_of(text)), reason)
            self.connection.execute(_LEFT_OUT, row)
            self.left_out[reason] += 1
        self.count += len(made.lines)
        for place, size in enumerate(np.bincount(made.splits, minlength=len(layout.SPLITS)).tolist()):
            self.splits[layout.SPLITS[place]] += size

    def _rows(self, source: int, made: Made) -> list[tuple[Any, ...]]:
        # A file of labels does not say what the text should be.
        targets = made.targets if not self.job.has_labels[source] else [None] * len(made.lines)
        errors = _errors(made)
        return [
            (
                self.count + number, source, line + 1, layout.SPLITS[split], text, target or text
                if target is not None else None, tokens, words, wrong,
            )
            for number, (line, split, text, target, tokens, words, wrong) in enumerate(
                zip(
                    made.lines.tolist(), made.splits.tolist(), made.texts, targets,
                    made.lengths[layout.TOKENS].tolist(), made.lengths[layout.LABELS].tolist(), errors,
                    strict=True,
                )
            )
        ]  # fmt: skip


def _errors(made: Made) -> list[int | None]:
    """Wrong words of each text; None where only the text has a label, and an error."""
    labels, lengths = made.lists[layout.LABELS], made.lengths[layout.LABELS]
    ends = np.cumsum(lengths)
    wrong = np.concatenate([np.zeros(1, np.int64), np.cumsum(labels == 1)])
    unknown = np.concatenate([np.zeros(1, np.int64), np.cumsum(labels == layout.UNKNOWN)])
    counts, missing = (total[ends] - total[ends - lengths] for total in (wrong, unknown))
    return [
        None if gap else count for count, gap in zip(counts.tolist(), (missing > 0).tolist(), strict=True)
    ]


def _read(job: Job, shard: Shard) -> Made:
    made = read_shard(shard.file(job.parts))
    if made is None:
        # The machine may have stopped before it lay on the disk.
        ShardMaker(job).make(shard)
        made = read_shard(shard.file(job.parts))
    assert made is not None
    return made


def _write_sources(connection: sqlite3.Connection, job: Job) -> None:
    rows = [
        (number, str(source.path), source.sha256, source.split, job.lines(number))
        for number, source in enumerate(job.sources)
    ]
    connection.executemany("INSERT INTO sources VALUES (?, ?, ?, ?, ?)", rows)


def _check_splits(job: Job, splits: Counter[str]) -> None:
    wanted = layout.SPLITS[:2] if job.sources[0].split is None else (str(job.sources[0].split),)
    for split in wanted:
        if not splits[split]:
            raise DataError(
                f"{job.sources[0].path}: no text for {split} is left, expected at least one; are all longer "
                f"than data.max_length ({job.data.max_length} tokens), or empty?"
            )


def _copy(data: SpellingTexts, folder: Path) -> None:
    """Keep what encodes: where it came from, there may be another one by the time of a later file."""
    for path, name in (
        (data.tokenizer_path, layout.TOKENIZER),
        (data.output_tokenizer_path, layout.OUTPUT_TOKENIZER),
        (data.dictionary, layout.DICTIONARY),
    ):
        if path is not None:
            shutil.copyfile(path, folder / name)
