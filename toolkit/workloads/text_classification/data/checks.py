"""Errors and warnings about the tables of an experiment, found before its job is submitted.

Imports no numpy, which takes time, unless a table has to be cut into its splits, or samples are very short.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from pathlib import Path
from typing import Any

from toolkit.config.faults import nearest
from toolkit.data.prepared.lookup import find_prepared_set, read_meta
from toolkit.data.sources.compressed import is_compressed
from toolkit.data.sources.file_digests import Stamp
from toolkit.data.sources.named_files import split_files, violation_of
from toolkit.errors import DataError
from toolkit.nlp.hub import check_local_model
from toolkit.nlp.tokenizers.tokenizer_files import TOKENIZER
from toolkit.workload import Violation
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.sources.formats.file_kinds import read_rows
from toolkit.workloads.text_classification.data.sources.formats.opening import opened
from toolkit.workloads.text_classification.data.sources.formats.parquet import is_parquet, unpacked_size
from toolkit.workloads.text_classification.data.sources.formats.prepared_table import is_database
from toolkit.workloads.text_classification.data.sources.formats.table import Row
from toolkit.workloads.text_classification.data.sources.formats.wording import shown
from toolkit.workloads.text_classification.data.sources.labels import (
    Skipped,
    count_empty,
    describe_skipped,
    nothing_known,
    refuse_unknown,
    refuse_untrained,
)
from toolkit.workloads.text_classification.data.sources.split_sizes import check_sizes
from toolkit.workloads.text_classification.data.sources.table_warnings import describe_notable, notable

#: Most bytes of all files together that are read here. That takes a tenth of a second, and four tenths for
#: very short texts.
_FEW_BYTES = 2 << 20
#: Rows of each file that are checked before a job is submitted. That takes about ten milliseconds.
_ROWS = 2000
#: Samples of more tokens have room beside the special ones; those of others are counted, which takes longer.
_FEW_TOKENS = 8
#: If a label has this many texts, a split of a tenth of the table has none of them once in 40,000 times.
_FREQUENT = 100
#: The last result for a small table: errors and warnings need it, and each run of a sweep.
_surveys: dict[tuple[object, ...], Mapping[str, Any]] = {}


def table_violations(data: TextTable, *, is_trained: bool = False) -> Iterator[Violation]:
    """Find missing files of a section, and files whose first rows do not fit the section.

    is_trained   whether the run has kept the tokenizer
    """
    files = split_files(data)
    found = [each for key, path in files for each in violation_of(key, _check_rows, path, data, is_trained)]
    yield from found
    if not (found or is_trained):
        yield from violation_of("data", _survey, data)
    if data.tokenizer == "pretrained" and data.tokenizer_path is not None and not is_trained:
        yield from violation_of("data.tokenizer_path", check_local_model, data.tokenizer_path, TOKENIZER)
        if data.max_tokens <= _FEW_TOKENS and (Path(data.tokenizer_path) / TOKENIZER).is_file():
            yield from violation_of("data", _check_room, data.tokenizer_path, data)


def _check_room(path: str, data: TextTable) -> None:
    """Raise DataError if special tokens fill a whole sample."""
    from toolkit.nlp.tokenizers.pretrained import PretrainedEncoder

    PretrainedEncoder(path, data.max_tokens, key="data.max_tokens")


def weight_violations(experiment: Any) -> Iterator[Violation]:
    """Find labels in task.class_weights that the data do not have.

    Large unprepared tables are not searched. A rule compares the labels with data.labels where that is given.
    """
    data, given = experiment.data, experiment.task.class_weights
    if not isinstance(given, dict) or data.labels is not None:
        return
    labels = _learnt_labels(data)
    for label in given if labels else ():
        if label not in labels:
            problem = f"found the label {label!r}, which the training set does not have"
            near = nearest(label, labels)
            hint = f"did you mean {near}?" if near else f"its labels: {shown(labels)}"
            yield Violation(key=("task", "class_weights", label), problem=problem, hint=hint)


def _check_rows(path: Path, data: TextTable, is_trained: bool) -> None:
    skipped = Skipped()
    rows = list(islice(read_rows(path, data), _ROWS))
    if not _usable(rows, path, data, skipped) and len(rows) < _ROWS:
        raise nothing_known(path, data, data.labels or (), skipped, is_trained=is_trained)


def table_warnings(data: TextTable) -> Iterator[Violation]:
    """Find rows that are left out, labels that look alike, splits that lack a label, texts in two splits."""
    name = "path" if data.path is not None else "train"
    try:
        found = _survey(data)
    except (OSError, DataError):
        # Already reported as a fault.
        return
    if found is None:
        problem = "too large to be searched for unknown or similar labels and for texts in two splits"
        yield Violation(key=("data", name), problem=problem, hint="`stk prepare` does that")
        return
    for line in (*describe_skipped(found["skipped"]), *describe_notable(found.get("notable", {}))):
        yield Violation(key=("data", name), problem=line)


def _survey(data: TextTable) -> Mapping[str, Any] | None:
    """Return the manifest of a table, or its reasons for warnings; None for large unprepared tables.

    Raises OSError, and DataError if the table cannot be prepared.
    """
    if (path := find_prepared_set(data)) is not None:
        return read_meta(path)
    files = _files(data)
    if not _are_small(files.values(), data):
        return None
    key = (repr(data), *map(Stamp.of, files.values()))
    if key not in _surveys:
        _surveys.clear()
        _surveys[key] = _survey_of(files, data)
    return _surveys[key]


def _survey_of(files: Mapping[str, Path], data: TextTable) -> Mapping[str, Any]:
    skipped = Skipped()
    tables = {split: _usable(read_rows(path, data), path, data, skipped) for split, path in files.items()}
    found = _of_rows(tables, files, data, skipped)
    return {"notable": found, "skipped": skipped.to_json()}


def _learnt_labels(data: TextTable) -> Sequence[str]:
    """The labels of the training set; of a single file all labels, because its splits are not known yet.

    Empty if the labels are not known: the table has a fault, or it is large and not prepared.
    """
    try:
        if (prepared := find_prepared_set(data)) is not None:
            found: Sequence[str] = read_meta(prepared).get("labels", ())
            return found
        files = _files(data)
        learnt = files.get("train", files.get("path"))
        if learnt is None or not _are_small([learnt], data):
            return ()
        return sorted({row.label for row in _usable(read_rows(learnt, data), learnt, data, Skipped())})
    except (OSError, DataError):
        # Already reported as a fault.
        return ()


def _are_small(files: Iterable[Path], data: TextTable) -> bool:
    """Whether files are small enough to be read here."""
    return sum(_size(path, data) for path in files) <= _FEW_BYTES


def _size(path: Path, data: TextTable) -> int:
    """Bytes of a file. Of a compressed file: its characters, counted up to one above the limit."""
    if is_parquet(path):
        return unpacked_size(path, data)
    if not is_compressed(path):
        return path.stat().st_size
    with opened(path, data.encoding, "\n") as stream:
        return len(stream.read(_FEW_BYTES + 1))


def _files(data: TextTable) -> dict[str, Path]:
    """The files by split; a file that is cut into splits has the key `path`."""
    return {key.removeprefix("data."): path for key, path in split_files(data)}


def _usable(rows: Iterable[Row], path: Path, data: TextTable, skipped: Skipped) -> list[Row]:
    """The rows with a text and one of data.labels; the others are counted, or raise DataError."""
    return [
        row
        for row in rows
        if not count_empty(path, row, data, skipped)
        and (data.labels is None or _is_known(row, data.labels, path, data, skipped))
    ]


def _is_known(row: Row, labels: Container[str], path: Path, data: TextTable, skipped: Skipped) -> bool:
    """Whether a row has one of these labels; if not it is counted. Raises DataError where that is refused."""
    if row.label in labels:
        return True
    place = f"{path}:{row.line}"
    if data.unknown_labels == "refuse":
        if data.labels is None:
            raise refuse_untrained(place, row.label, data)
        raise refuse_unknown(place, row.label, data.labels)
    skipped.unknown(row.label, place)
    return False


def _of_rows(
    tables: Mapping[str, list[Row]], files: Mapping[str, Path], data: TextTable, skipped: Skipped
) -> dict[str, Any]:
    """Return the unusual properties of tables, and count the rows whose label training does not have."""
    splits, places = tables, files
    if "path" in tables:
        rows, path = tables["path"], files["path"]
        is_whole = data.split_unit == "fragment" or is_database(path)
        if not is_whole:
            check_sizes(path, len(rows), data.splits)
        if is_whole or not _may_lack_or_share(rows):
            return notable(data.labels or sorted({row.label for row in rows}), {}, [])
        splits = _cut(rows, data)
        places = dict.fromkeys(splits, path)
    labels = data.labels or tuple(sorted({row.label for row in splits.get("train", ())}))
    known = frozenset(labels)
    for name, rows in tables.items():
        for row in rows:
            _is_known(row, known, files[name], data, skipped)
    splits = {split: [row for row in rows if row.label in known] for split, rows in splits.items()}
    for split, rows in splits.items():
        if not rows and (data.path is None or data.splits[split] > 0):
            raise nothing_known(places[split], data, labels, skipped)
    found = {split: Counter(row.label for row in rows) for split, rows in splits.items() if rows}
    counts = {split: [of_label[label] for label in labels] for split, of_label in found.items()}
    return notable(labels, counts, _shared(splits, places))


def _may_lack_or_share(rows: Sequence[Row]) -> bool:
    """Whether a split may by chance have no text of a label, or share a text with another split."""
    rarest = min(Counter(row.label for row in rows).values(), default=0)
    return rarest < _FREQUENT or len({row.text for row in rows}) < len(rows)


def _cut(rows: Sequence[Row], data: TextTable) -> dict[str, list[Row]]:
    """Cut a table into its splits, as when it is prepared."""
    import numpy as np

    from toolkit.workloads.text_classification.data.sources.splits import assign_splits

    numbers: dict[str, int] = {}
    labels = np.array([numbers.setdefault(row.label, len(numbers)) for row in rows], np.int32)
    cut = assign_splits(
        len(rows), list(data.splits.values()), data.split_seed, labels if data.stratify else None
    )
    parts = {name: np.flatnonzero(cut == number).tolist() for number, name in enumerate(data.splits)}
    return {name: [rows[place] for place in places] for name, places in parts.items()}


def _shared(splits: Mapping[str, list[Row]], files: Mapping[str, Path]) -> list[dict[str, Any]]:
    """The texts in two splits, for each pair of splits that shares some."""
    lines = {split: {row.text: row.line for row in reversed(rows)} for split, rows in splits.items()}
    found = []
    for one, other in combinations(lines, 2):
        common = [text for text in lines[other] if text in lines[one]]
        if common:
            first = min(common, key=lines[one].__getitem__)
            places = (f"{files[one]}:{lines[one][first]}", f"{files[other]}:{lines[other][first]}")
            found.append({"splits": (one, other), "texts": len(common), "places": places})
    return found
