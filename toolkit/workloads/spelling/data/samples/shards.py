"""Shards: consecutive lines that one process converts to samples. Each shard is written atomically."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from toolkit.data.prepared.arrays import map_array, write_array
from toolkit.data.prepared.columns import Column
from toolkit.data.ragged import Array, Lists
from toolkit.workloads.spelling.config.data import SpellingTexts
from toolkit.workloads.spelling.data.noise.from_config import noise_of
from toolkit.workloads.spelling.data.noise.noise import Sample, generator
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.encoding import TextEncoder
from toolkit.workloads.spelling.data.samples.lines import line_starts, read_line
from toolkit.workloads.spelling.data.samples.mixture import divide, spread
from toolkit.workloads.spelling.data.samples.parse_line import Line, holds_labels, parse_line
from toolkit.workloads.spelling.data.samples.sources import VAL_SPLIT, Source, different_counts

#: A shard has one array per list. The arrays with the lengths of lists have this prefix.
_LENGTHS = "lengths_"
_ROWS = "rows"
_Row: TypeAlias = "tuple[int, int, bool, str, str | None]"
_LeftOut: TypeAlias = "tuple[int, int, str, int, str]"


@dataclass(frozen=True, slots=True)
class Shard:
    """The places from `first` to `last` (exclusive) among the chosen lines of a source."""

    source: int
    first: int
    last: int

    def file(self, parts: Path) -> Path:
        return parts / f"shard-{self.source}-{self.first}-{self.last}.npz"


@dataclass(frozen=True, slots=True)
class Job:
    """A preparation. All its processes have the same job.

    parts  the folder of the shards, with the chosen places of each source and the starts of its lines

    A source of n lines has the places 0 to n - 1. Place n + i is line i with the errors of a second draw,
    place 2 n + i with those of a third draw.
    """

    parts: Path
    data: SpellingTexts
    sources: tuple[Source, ...]
    has_labels: tuple[bool, ...]

    @classmethod
    def plan(cls, parts: Path, data: SpellingTexts, sources: tuple[Source, ...]) -> Job:
        """Choose the lines of all sources and write the choice into the folder. Raises DataError, OSError."""
        for number, source in enumerate(sources):
            starts = [line_starts(file) for file in source.files]
            counts = [len(each) - 1 for each in starts]
            if len(set(counts)) > 1:
                raise different_counts(source, [f"{count:,}" for count in counts])
            for place, each in enumerate(starts):
                write_array(parts, _column("starts", number, place), each)
            places, splits = _chosen(data, source, number, counts[0])
            if source.split is None and not source.has_golds:
                places, splits = _drawn(places, splits, counts[0], data.noise_draws)
            write_array(parts, _column("places", number), places)
            write_array(parts, _column("splits", number), splits)
        labels = tuple(source.has_golds and holds_labels(source.files[1]) for source in sources)
        return cls(parts, data, sources, labels)

    def chosen(self, source: int) -> tuple[Array, Array]:
        """Return the chosen places of a source, ascending, and the split of each."""
        return self._load("places", source), self._load("splits", source)

    def lines(self, source: int) -> int:
        return len(self._load("starts", source, 0)) - 1

    def read(self, number: int, places: Array) -> Iterator[Line]:
        """Yield the lines of a source at these places. Raises DataError naming file and line."""
        source, has_labels = self.sources[number], self.has_labels[number]
        starts = [self._load("starts", number, file) for file in range(len(source.files))]
        with ExitStack() as stack:
            streams = [stack.enter_context(open(file, "rb")) for file in source.files]
            for place in places.tolist():
                files = zip(source.files, streams, starts, strict=True)
                texts = [read_line(*each, place) for each in files]
                yield parse_line(source, place, texts, has_labels=has_labels)

    def shards(self) -> Iterator[Shard]:
        for number in range(len(self.sources)):
            count = len(self._load("places", number))
            for first in range(0, count, layout.SHARD):
                yield Shard(number, first, min(first + layout.SHARD, count))

    def _load(self, kind: str, *numbers: int) -> Array:
        return map_array(self.parts, _column(kind, *numbers))


def _chosen(
    data: SpellingTexts, source: Source, number: int, lines: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return the lines of a source that become samples, ascending, and the split of each line.

    number  number of the source, which is also the position of its options
    """
    if source.split is not None:
        return np.arange(lines), np.full(lines, layout.SPLITS.index(source.split), np.uint8)
    limit = None if data.dataset_limits is None else data.dataset_limits[number]
    if data.validation is not None:
        # The texts for validation are in separate files.
        places = spread(np.arange(lines), limit)
        return places, np.zeros(len(places), np.uint8)
    val_split = VAL_SPLIT if data.val_splits is None else data.val_splits[number]
    parts = divide(source.sha256, lines, val_split, limit, data.split_seed, str(source.path))
    places = np.concatenate(parts)
    splits = np.repeat(np.array([0, 1], np.uint8), [*map(len, parts)])
    order = np.argsort(places, kind="stable")
    return places[order], splits[order]


def _drawn(
    places: npt.NDArray[np.int64], splits: npt.NDArray[np.uint8], lines: int, draws: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Add the places of further draws for the lines of the training split."""
    trained = places[splits == layout.SPLITS.index("train")]
    more = [trained + lines * draw for draw in range(1, draws)]
    added = len(trained) * len(more)
    return np.concatenate([places, *more]), np.append(splits, np.zeros(added, splits.dtype))


def _column(kind: str, *numbers: int) -> Column:
    """The array of the starts of the lines of a source's file, or of the places or splits of a source."""
    return Column(f"{'-'.join([kind, *map(str, numbers)])}.bin", "|u1" if kind == "splits" else "<i8")


class ShardMaker:
    """Makes shards; loads noise, tokenizers and dictionary once. Raises DataError."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._noise = noise_of(job.data.noise)
        self._encoder = TextEncoder(job.data)

    def make(self, shard: Shard) -> None:
        """Write a shard. Raises DataError naming file and line, OSError."""
        job, samples, left_out = self.job, list[_Row](), list[_LeftOut]()
        places, splits = (each[shard.first : shard.last].tolist() for each in job.chosen(shard.source))
        seed = job.sources[shard.source].seed(job.data.noise_seed)
        numbers = np.array(places, np.int64) % max(job.lines(shard.source), 1)
        lists: list[dict[str, Array]] = []
        lines = job.read(shard.source, numbers)
        for place, number, split, line in zip(places, numbers.tolist(), splits, lines, strict=True):
            if place != number and (line.target is not None or not line.text):
                # A further draw has other errors only for clean texts.
                continue
            if not line.text:
                left_out.append((number, split, line.text, 0, layout.EMPTY))
                continue
            text, target, encoded = self._encoded(line, generator(seed, place))
            if (tokens := len(encoded[layout.TOKENS])) > job.data.max_length:
                left_out.append((number, split, text, tokens, layout.TOO_LONG))
                continue
            wrong = 1 in (encoded[layout.LABELS] if line.labels is None else line.labels)
            wrong |= line.target is not None and line.target != text
            samples.append((number, split, wrong, text, target))
            lists.append(encoded)
        path = shard.file(job.parts)
        temporary = path.with_name(f".{path.name}.tmp")
        rows = json.dumps({"samples": samples, "left_out": left_out})
        arrays = {**_joined(lists), _ROWS: np.frombuffer(rows.encode(), dtype=np.uint8)}
        with open(temporary, "wb") as stream:
            np.savez(stream, allow_pickle=False, **arrays)
        temporary.replace(path)

    def _encoded(self, line: Line, errors: np.random.Generator) -> tuple[str, str | None, dict[str, Array]]:
        """Return text and target of a line, and the lists of both; a clean text gets noise first."""
        text, target, spaced = line.text, line.target, None
        if target is None and line.labels is None:
            sample = self._noise(Sample.of(text), errors)
            text, target, spaced = sample.text, sample.clean or sample.target, sample.spaced
        return text, target, self._encoder.lists(text, target, line.labels, spaced)


def _joined(lists: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Join the lists of samples, each with the lengths of its parts."""
    found: dict[str, Array] = {}
    for group in layout.LISTS:
        for name in group:
            joined = Lists.of([of_sample[name] for of_sample in lists], layout.DTYPES[name])
            found[name] = joined.values
        found[_LENGTHS + group[0]] = np.diff(joined.offsets)
    return found


@dataclass(frozen=True, slots=True)
class Made:
    """The contents of a shard.

    lists     by name: the lists of all samples, one after the other
    lengths   by the name of a group of lists: the lengths of the samples' lists
    samples   line, split, whether it has an error, text, target
    left_out  line, split, text, tokens, reason
    """

    lists: dict[str, Array]
    lengths: dict[str, Array]
    samples: list[_Row]
    left_out: list[_LeftOut]


def read_shard(path: Path) -> Made | None:
    """Read a shard; None if it is missing or damaged, so that it must be made again."""
    try:
        with np.load(path, allow_pickle=False) as file:
            stored = {name: file[name] for name in file.files}
        rows = json.loads(stored[_ROWS].tobytes())
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    lengths = {group[0]: stored[_LENGTHS + group[0]] for group in layout.LISTS}
    lists = {name: stored[name] for group in layout.LISTS for name in group}
    return Made(lists, lengths, rows["samples"], rows["left_out"])
