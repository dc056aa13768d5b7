"""Faults within the files of a data section, found before its job is submitted.

The beginning of each file is read with the functions that prepare the data. Imports no numpy, which takes
time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from toolkit.config.schema import Experiment
from toolkit.data.sources.named_files import violation_of
from toolkit.data.sources.source_files import TEST, SourceFile
from toolkit.errors import DataError
from toolkit.workload import Violation
from toolkit.workloads.spelling.config.data import SpellingTexts
from toolkit.workloads.spelling.config.noise import RealisticNoise, WhitespaceNoise, WordNoise, noises_within
from toolkit.workloads.spelling.data.samples.layout import SPLITS
from toolkit.workloads.spelling.data.samples.parse_line import holds_labels, parse_line
from toolkit.workloads.spelling.data.samples.sources import (
    VAL_SPLIT,
    Source,
    data_sets,
    different_counts,
    files_of,
    validation_size,
)
from toolkit.workloads.spelling.data.texts.dictionary import read_dictionary
from toolkit.workloads.spelling.data.texts.text_files import decoded, reading
from toolkit.workloads.spelling.tokenizers.tokenizer import characters_expected, load_tokenizer

#: Lines of each file that are checked, within its first bytes. That takes up to 20 ms for each file.
_LINES, _BYTES = 2000, 1 << 20
#: Larger JSON files are left to the preparation, because only the whole of a JSON file can be read.
_FEW_BYTES = 1 << 20


class _Head(NamedTuple):
    """The first lines of a file, and whether these are all of its lines."""

    lines: list[bytes]
    is_whole: bool


def content_violations(data: SpellingTexts, *, is_trained: bool = False) -> Iterator[Violation]:
    """Find faults in the first lines of the files of a section; missing files are skipped.

    is_trained   whether the run has kept tokenizers and dictionary; `data.path` is then only scored
    """
    of_training = "datasets" if data.path is None else "path"
    yield from _text_violations(data, of_training, TEST if is_trained else None)
    for split in SPLITS[1:]:
        yield from _text_violations(data, split, split)
    if not is_trained:
        for name in ("tokenizer_path", "output_tokenizer_path"):
            if _is_small(path := getattr(data, name)):
                yield from violation_of(f"data.{name}", load_tokenizer, Path(path))
        if data.dictionary is not None and Path(data.dictionary).is_file():
            yield from violation_of("data.dictionary", read_dictionary, Path(data.dictionary), _LINES)
    for place, noise in noises_within(data.noise, ("data", "noise")):
        if isinstance(noise, RealisticNoise) and _is_small(noise.misspellings):
            # Needs a package that other noises do not need.
            from toolkit.workloads.spelling.data.noise.misspellings import Misspellings

            key = ".".join((*place, "misspellings"))
            yield from violation_of(key, Misspellings.load, Path(noise.misspellings))


def noise_warnings(data: SpellingTexts) -> Iterator[Violation]:
    """Find noise without errors if all training texts are clean."""
    has_errors = any(isinstance(each, WordNoise | WhitespaceNoise) for _, each in noises_within(data.noise))
    sources = [_source(name, None) for name in data_sets(data)]
    if not has_errors and not any(each.has_golds or each.has_records for each in sources):
        problem = "puts no errors into the texts, and all data sets are clean: there is nothing to learn"
        hint = "such as data.noise=artificial, or data.noise=whitespace"
        yield Violation(key=("data", "noise"), problem=problem, hint=hint)


def character_violations(experiment: Experiment) -> Iterator[Violation]:
    """Find a tokenizer of longer tokens, for a task that needs one of characters."""
    path = experiment.data.tokenizer_path
    # content_violations finds other faults of the file.
    with suppress(DataError):
        if _is_small(path) and not load_tokenizer(Path(path)).reads_spaces:
            problem = characters_expected(path, experiment.task.kind)
            yield Violation(key=("data", "tokenizer_path"), problem=problem)


def _text_violations(data: SpellingTexts, name: str, split: str | None) -> Iterator[Violation]:
    """Find faults in the texts that a key of the section names.

    split  None for data sets, which are divided into training and validation
    """
    named, key = getattr(data, name) or (), f"data.{name}"
    keys = [key] if isinstance(named, str) else [f"{key}.{place}" for place in range(len(named))]
    sources = [_source(each, split) for each in ([named] if isinstance(named, str) else named)]
    is_sound = bool(sources)
    for place, source in enumerate(sources):
        exists = all(map(Path.is_file, source.files))
        found = [*violation_of(keys[place], _check_source, data, source, place)] if exists else []
        is_sound &= exists and not found
        yield from found
    if is_sound:
        yield from violation_of(keys[0], _check_any_text, sources)


def _source(name: str, split: str | None) -> Source:
    """Return a source without hashes and states of files, because nothing is prepared."""
    path = Path(name).expanduser()
    parts = [SourceFile(path=file, split=split, sha256="", state=(-1, -1)) for file in files_of(path)]
    return Source(path=path, split=split, parts=tuple(parts))


def _check_source(data: SpellingTexts, source: Source, place: int) -> None:
    heads = [_head(file) for file in source.files]
    _check_counts(source, heads)
    is_divided = source.split is None and data.validation is None
    if is_divided and heads[0].is_whole:
        share = VAL_SPLIT if data.val_splits is None else data.val_splits[place]
        validation_size(str(source.path), len(heads[0].lines), share)
    if source.split is None and _is_limited(data, source, place):
        # Lines that are not drawn may be faulty.
        return
    with reading(source.path):
        has_labels = source.has_golds and holds_labels(source.files[1])
    for number, lines in enumerate(zip(*(head.lines for head in heads), strict=False)):
        files = zip(source.files, lines, strict=True)
        texts = [decoded(file, number + 1, line) for file, line in files]
        parse_line(source, number, texts, has_labels=has_labels)


def _is_limited(data: SpellingTexts, source: Source, place: int) -> bool:
    """Whether `dataset_limits` may leave lines out. No file has more lines than bytes."""
    limits = data.dataset_limits
    return limits is not None and limits[place] < source.files[0].stat().st_size


def _check_counts(source: Source, heads: Sequence[_Head]) -> None:
    """Raise DataError if one of two files certainly has more lines."""
    counts = [(len(head.lines), not head.is_whole) for head in heads]
    if len({*counts}) > 1 and not min(counts)[1]:
        shown = [f"{'more than ' if is_cut else ''}{count:,}" for count, is_cut in counts]
        raise different_counts(source, shown)


def _check_any_text(sources: Sequence[Source]) -> None:
    heads = [_head(source.files[0]) for source in sources]
    if all(head.is_whole and not any(map(bytes.strip, head.lines)) for head in heads):
        raise DataError(f"{sources[0].path} has no text: expected at least one line that is not blank")


def _head(path: Path) -> _Head:
    """Return the beginning of a file. Raises DataError."""
    with reading(path), open(path, "rb") as stream:
        block = stream.read(_BYTES)
        is_whole = not stream.read(1)
    *lines, rest = block.split(b"\n")
    if is_whole and rest:
        lines.append(rest)
    return _Head(lines[:_LINES], is_whole and len(lines) <= _LINES)


def _is_small(name: str | None) -> bool:
    """Whether a file exists, and is small enough to be read here."""
    return name is not None and Path(name).is_file() and Path(name).stat().st_size <= _FEW_BYTES
