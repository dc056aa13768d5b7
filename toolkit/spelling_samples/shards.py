"""Shards: runs of lines that one process makes samples of, and that are there when they are whole."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from toolkit.config.kinds import SpellingTexts
from toolkit.data.mixture import DataSet, divide, spread
from toolkit.errors import DataError
from toolkit.spelling.described import noise_of
from toolkit.spelling.noise import Noise, Sample, generator
from toolkit.spelling_samples import layout
from toolkit.spelling_samples.encoding import Array, TextEncoder, has_error
from toolkit.spelling_samples.lines import Line, LineReader, holds_labels, line_starts, save_array
from toolkit.spelling_samples.sources import VAL_SPLIT, Source

#: Lists of a shard as one array each, with the lengths of the samples' own under this name before theirs.
_LENGTHS = "lengths_"
_FLAT = {name: np.dtype(layout.DTYPES[name]) for group in layout.LISTS for name in group}


@dataclass(frozen=True, slots=True)
class Shard:
    """Places `first` to `last` (exclusive) among the chosen lines of a source."""

    source: int
    first: int
    last: int

    def file(self, parts: Path) -> Path:
        return parts / f"shard-{self.source}-{self.first}-{self.last}.npz"


@dataclass(frozen=True, slots=True)
class Job:
    """What every process of a preparation knows.

    parts  the folder of the shards, with the chosen lines of each source and where its lines begin
    """

    parts: Path
    data: SpellingTexts
    sources: tuple[Source, ...]
    has_labels: tuple[bool, ...]

    @classmethod
    def plan(cls, parts: Path, data: SpellingTexts, sources: tuple[Source, ...]) -> Job:
        """Choose the lines of all sources, and write which. Raises DataError, OSError."""
        known = list(_options(data))
        for number, source in enumerate(sources):
            starts = [line_starts(file) for file in source.files]
            _check_parallel(source, [len(each) - 1 for each in starts])
            for place, each in enumerate(starts):
                save_array(_starts_file(parts, number, place), each)
            places, splits = _chosen(data, source, len(starts[0]) - 1, *known[number : number + 1])
            save_array(_places_file(parts, number), places)
            save_array(_splits_file(parts, number), splits)
        labels = tuple(source.has_golds and holds_labels(source.files[1]) for source in sources)
        return cls(parts, data, sources, labels)

    def places(self, source: int) -> npt.NDArray[np.int64]:
        """The chosen lines of a source, ascending, from 0."""
        return np.load(_places_file(self.parts, source), mmap_mode="r")  # type: ignore[no-any-return]

    def splits(self, source: int) -> npt.NDArray[np.uint8]:
        """The split of each of them."""
        return np.load(_splits_file(self.parts, source), mmap_mode="r")  # type: ignore[no-any-return]

    def lines(self, source: int) -> int:
        """Lines of a source."""
        return len(np.load(_starts_file(self.parts, source, 0), mmap_mode="r")) - 1

    def reader(self, source: int) -> LineReader:
        files = range(len(self.sources[source].files))
        starts = tuple(np.load(_starts_file(self.parts, source, file), mmap_mode="r") for file in files)
        return LineReader(source=self.sources[source], starts=starts, has_labels=self.has_labels[source])

    def shards(self) -> Iterator[Shard]:
        """Yield all shards in their order."""
        for number in range(len(self.sources)):
            count = len(self.places(number))
            for first in range(0, count, layout.SHARD):
                yield Shard(number, first, min(first + layout.SHARD, count))


def _options(data: SpellingTexts) -> Iterator[tuple[float, int | None]]:
    """Yield validation and limit of each data set."""
    count = 1 if data.path is not None else len(data.datasets or ())
    for number in range(count):
        split = VAL_SPLIT if data.val_splits is None else data.val_splits[number]
        yield split, None if data.dataset_limits is None else data.dataset_limits[number]


def _chosen(
    data: SpellingTexts, source: Source, lines: int, options: tuple[float, int | None] = (VAL_SPLIT, None)
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return the lines of a source that become samples, ascending, and the split of each."""
    if source.split is not None:
        return np.arange(lines), np.full(lines, layout.SPLITS.index(source.split), np.uint8)
    val_split, limit = options
    if data.validation is not None:
        # Validation has files of its own.
        places = spread(np.arange(lines), limit)
        return places, np.zeros(len(places), np.uint8)
    whole = DataSet(name=source.sha256, samples=lines, val_split=val_split, limit=limit)
    parts = divide(whole, data.split_seed)
    places = np.concatenate([parts.train, parts.validation])
    splits = np.repeat(np.array([0, 1], np.uint8), [len(parts.train), len(parts.validation)])
    order = np.argsort(places, kind="stable")
    return places[order], splits[order]


def _check_parallel(source: Source, lines: Sequence[int]) -> None:
    if len(set(lines)) > 1:
        names = " and ".join(f"{file} {count:,}" for file, count in zip(source.files, lines, strict=True))
        raise DataError(f"expected as many lines in both files, found in {names}; are they of one benchmark?")


def _starts_file(parts: Path, source: int, file: int) -> Path:
    return parts / f"starts-{source}-{file}.npy"


def _places_file(parts: Path, source: int) -> Path:
    return parts / f"places-{source}.npy"


def _splits_file(parts: Path, source: int) -> Path:
    return parts / f"splits-{source}.npy"


@dataclass(slots=True)
class ShardMaker:
    """Makes shards; loads noise, tokenizers and dictionary once. Raises DataError."""

    job: Job
    _noise: Noise = field(init=False)
    _encoder: TextEncoder = field(init=False)

    def __post_init__(self) -> None:
        self._noise = noise_of(self.job.data.noise)
        self._encoder = TextEncoder.of(self.job.data)

    def make(self, shard: Shard) -> None:
        """Write a shard. Raises DataError naming file and line, OSError."""
        job = self.job
        places = np.array(job.places(shard.source)[shard.first : shard.last])
        splits = np.array(job.splits(shard.source)[shard.first : shard.last])
        seed = job.sources[shard.source].seed(job.data.noise_seed)
        drawer = _Drawer()
        for place, split, line in zip(
            places.tolist(), splits.tolist(), job.reader(shard.source).read(places), strict=True
        ):
            self._add(drawer, line, place, split, seed)
        path = shard.file(job.parts)
        temporary = path.with_name(f".{path.name}.tmp")
        with open(temporary, "wb") as stream:
            np.savez(stream, allow_pickle=False, **drawer.arrays())
        temporary.replace(path)

    def _add(self, drawer: _Drawer, line: Line, place: int, split: int, seed: int) -> None:
        text, target, spaced = line.text, line.target, None
        if not text:
            drawer.leave_out(place, split, text, 0, layout.EMPTY)
            return
        if target is None and line.labels is None:
            sample = self._noise.apply(Sample.of(text), generator(seed, place))
            text, target, spaced = sample.text, sample.clean or sample.target, sample.spaced
        lists = self._encoder.lists(text, target, line.labels, spaced)
        tokens = len(lists[layout.TOKENS])
        if tokens > self.job.data.max_length:
            drawer.leave_out(place, split, text, tokens, layout.TOO_LONG)
        else:
            drawer.keep(place, split, text, target, lists, has_error(lists[layout.LABELS], line.labels))


class _Drawer:
    """Gathers what a shard holds."""

    def __init__(self) -> None:
        self._lists: list[dict[str, Array]] = []
        self._numbers: list[tuple[int, int, int]] = []
        self._texts: list[str] = []
        self._left_out: list[tuple[int, int, int]] = []
        self._left_texts: list[str] = []

    def keep(
        self, place: int, split: int, text: str, target: str | None, lists: dict[str, Array], error: bool
    ) -> None:
        self._lists.append(lists)
        self._numbers.append((place, split, error))
        # A text has no line break. One that equals its target, or has none, takes a line for it, too.
        self._texts += [text, "" if target is None or target == text else target]

    def leave_out(self, place: int, split: int, text: str, tokens: int, reason: str) -> None:
        self._left_out.append((place, split, tokens if reason == layout.TOO_LONG else -1))
        self._left_texts.append(text)

    def arrays(self) -> dict[str, Array]:
        """What the file holds: plain arrays alone."""
        found: dict[str, Array] = {}
        for group in layout.LISTS:
            lengths = [len(lists[group[0]]) for lists in self._lists]
            found[_LENGTHS + group[0]] = np.array(lengths, dtype=np.int64)
            for name in group:
                values = [lists[name] for lists in self._lists]
                found[name] = np.concatenate([np.zeros(0), *values]).astype(_FLAT[name])
        found["numbers"] = np.array(self._numbers, dtype=np.int64).reshape(-1, 3)
        found["texts"] = _bytes(self._texts)
        found["left_out"] = np.array(self._left_out, dtype=np.int64).reshape(-1, 3)
        found["left_texts"] = _bytes(self._left_texts)
        return found


def _bytes(texts: list[str]) -> npt.NDArray[np.uint8]:
    return np.frombuffer("\n".join(texts).encode(), dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class Made:
    """A shard that was read again.

    lists     by name, the samples' own one after the other; `lengths` of them by the name of their group
    lines, splits, errors   [samples]
    texts, targets          a target is empty where it is the text
    left_out  lines that became no samples: line, split, text, tokens, reason
    """

    lists: dict[str, Array]
    lengths: dict[str, Array]
    lines: Array
    splits: Array
    errors: Array
    texts: list[str]
    targets: list[str]
    left_out: list[tuple[int, int, str, int, str]]


def read_shard(path: Path) -> Made | None:
    """Read a shard; None where it is not there, or damaged, and to be made again."""
    try:
        with np.load(path, allow_pickle=False) as file:
            stored = {name: file[name] for name in file.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    lines, splits, errors = stored["numbers"].T
    texts = _texts(stored["texts"], 2 * len(lines))
    left_texts = _texts(stored["left_texts"], len(stored["left_out"]))
    left_out = [
        (line, split, text, max(tokens, 0), layout.EMPTY if tokens < 0 else layout.TOO_LONG)
        for (line, split, tokens), text in zip(stored["left_out"].tolist(), left_texts, strict=True)
    ]
    return Made(
        {name: stored[name] for name in _FLAT},
        {group[0]: stored[_LENGTHS + group[0]] for group in layout.LISTS},
        lines, splits, errors, texts[::2], texts[1::2], left_out,
    )  # fmt: skip


def _texts(stored: npt.NDArray[np.uint8], count: int) -> list[str]:
    return stored.tobytes().decode().split("\n") if count else []
