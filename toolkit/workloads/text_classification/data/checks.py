"""Errors and warnings about the tables of an experiment, found before its job is submitted.

Imports no numpy, which takes time, unless a small table needs a survey, or samples are very short.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from toolkit.data.prepared.lookup import find_prepared_set, read_meta
from toolkit.data.sources.compressed import is_compressed
from toolkit.data.sources.file_digests import Stamp
from toolkit.data.sources.named_files import violation_of
from toolkit.data.sources.source_files import file_state
from toolkit.data.sources.split_files import files_by_split, key_of_split
from toolkit.errors import DataError
from toolkit.nlp.hub import check_local_model
from toolkit.nlp.tokenizers.tokenizer_files import TOKENIZER
from toolkit.system.numpy_import import import_numpy
from toolkit.system.output.nearest import nearest
from toolkit.workload import Violation, silent
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.sources.formats.file_kinds import Format, read_rows
from toolkit.workloads.text_classification.data.sources.formats.opening import opened
from toolkit.workloads.text_classification.data.sources.formats.parquet import is_parquet, unpacked_size
from toolkit.workloads.text_classification.data.sources.formats.prepared_table import (
    is_database,
    training_splits,
)
from toolkit.workloads.text_classification.data.sources.formats.table import Row
from toolkit.workloads.text_classification.data.sources.formats.wording import shown
from toolkit.workloads.text_classification.data.sources.labels import (
    Skipped,
    count_empty,
    describe_skipped,
    nothing_known,
    refuse_unknown,
)
from toolkit.workloads.text_classification.data.sources.source_files import Source, check_labels
from toolkit.workloads.text_classification.data.sources.split_sizes import check_sizes
from toolkit.workloads.text_classification.data.sources.table_warnings import describe_notable, notable

#: Limit for all files together, in bytes, to be read here. Reading takes a tenth of a second, and four tenths
#: for very short texts.
_FEW_BYTES = 2 << 20
#: Rows of each file that are checked before a job is submitted. That takes about ten milliseconds.
_ROWS = 2000
#: Samples of more tokens have room for all special tokens. For shorter samples, a slower check counts them.
_FEW_TOKENS = 8
#: If a label has this many texts, a split of a tenth of the table has none of them once in 40,000 times.
_FREQUENT = 100
#: The last result for a small table: errors, warnings and the runs of a sweep need it.
_surveys: dict[tuple[object, ...], Mapping[str, Any]] = {}


def table_violations(data: TextTable, *, is_trained: bool = False) -> Iterator[Violation]:
    """Find missing files of a section, and files with first rows that do not fit the section.

    is_trained   whether the run has kept the tokenizer
    """
    found = [*violation_of("data.labels", check_labels, data)] or [
        each
        for split, path in files_by_split(data).items()
        for each in violation_of(key_of_split(split), _check_rows, path, data, is_trained)
    ]
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
    """Find labels in task.class_weights that the data do not have, and weights that are all 0.

    Large unprepared tables are not searched. If data.labels is given, a rule compares the labels with it.
    """
    data, given = experiment.data, experiment.task.class_weights
    if not isinstance(given, dict):
        return
    labels = data.labels or _learnt_labels(data)
    if labels and not any(given.get(label, 1) for label in labels):
        problem = "found 0 for each label of the training set: its loss would always be 0"
        yield Violation(key=("task", "class_weights"), problem=problem)
    for label in given if labels and data.labels is None else ():
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
    files = files_by_split(data)
    if (whole := files.get(None)) is not None and is_database(whole):
        training_splits(whole)
    if not _are_small(files.values(), data):
        return None
    key = (repr(data), *map(Stamp.of, files.values()))
    if key not in _surveys:
        _surveys.clear()
        _surveys[key] = _survey_of(files, data)
    return _surveys[key]


def _survey_of(files: Mapping[str | None, Path], data: TextTable) -> Mapping[str, Any]:
    """Survey a table as in its preparation; skip the parts that need numpy if they would find nothing."""
    sources = [_source(split, path, data) for split, path in files.items()]
    skipped = Skipped()
    tables = [_usable(source.rows(data), source.path, data, skipped) for source in sources]
    labels = data.labels or tuple(sorted({row.label for table in tables for row in table}))
    is_cut = None in files and data.split_unit == "text" and not is_database(sources[0].path)
    if is_cut:
        check_sizes(sources[0].path, len(tables[0]), data.splits)
    if (None in files and not is_cut) or _is_plain(tables, labels):
        return {"notable": notable(labels, {}, []), "skipped": skipped.to_json()}
    import_numpy()
    from toolkit.workloads.text_classification.data.sources.first_pass import survey

    found = survey(data, sources, silent)
    return {"notable": found.notable, "skipped": found.skipped.to_json()}


def _source(split: str | None, path: Path, data: TextTable) -> Source:
    """Return a file without its hash, which is not needed, because nothing is prepared."""
    return Source(path=path, split=split, sha256="", state=file_state(path), format=Format.of(path, data))


def _is_plain(tables: Sequence[Sequence[Row]], labels: Sequence[str]) -> bool:
    """Whether each split has all labels and shares no text with another split.

    For a single table, which will be cut into splits: whether all labels are frequent and no text repeats.
    """
    least = _FREQUENT if len(tables) == 1 else 1
    texts = [{row.text for row in table} for table in tables]
    alone = sum(map(len, tables if len(tables) == 1 else texts))
    counts = [Counter(row.label for row in table) for table in tables]
    has_all = all(of_label[label] >= least for of_label in counts for label in labels)
    return has_all and bool(labels) and len(set().union(*texts)) == alone


def _learnt_labels(data: TextTable) -> Sequence[str]:
    """Return the labels of the training set; for a single file, all labels, as its splits are not known yet.

    Empty if the labels are unknown: the table has an error, or it is large and not prepared.
    """
    try:
        if (prepared := find_prepared_set(data)) is not None:
            found: Sequence[str] = read_meta(prepared).get("labels", ())
            return found
        files = files_by_split(data)
        learnt = files.get("train", files.get(None))
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
    """Return the bytes of a file; for a compressed file, its characters, up to one above the limit."""
    if is_parquet(path):
        return unpacked_size(path, data)
    if not is_compressed(path):
        return path.stat().st_size
    with opened(path, data.encoding, "\n") as stream:
        return len(stream.read(_FEW_BYTES + 1))


def _usable(rows: Iterable[Row], path: Path, data: TextTable, skipped: Skipped) -> list[Row]:
    """Return the rows with a text and one of data.labels; other rows are counted, or raise DataError."""
    found = []
    for row in rows:
        if count_empty(path, row, data, skipped):
            continue
        if data.labels is None or row.label in data.labels:
            found.append(row)
        elif data.unknown_labels == "refuse":
            raise refuse_unknown(f"{path}:{row.line}", row.label, data.labels)
        else:
            skipped.unknown(row.label, f"{path}:{row.line}")
    return found
