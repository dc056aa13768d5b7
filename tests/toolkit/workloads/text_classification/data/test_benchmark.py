"""A file that is only scored: prepared with the labels and tokens that a training set has settled."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.bert import write_bert
from tests.toolkit.workloads.text_classification.data.films import tokens_of
from toolkit.errors import DataError
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.prepared import Prepared, prepare, prepare_benchmark

ROWS = [("warm plot", "good"), ("dull plot", "bad"), ("bright film", "good"), ("slow scene", "bad")]


def write(path: Path, rows: list[tuple[str, str]]) -> str:
    path.write_text("\n".join(["text\tlabel", *("\t".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return str(path)


def table(folder: Path, **settings: Any) -> TextTable:
    given = {name: write(folder / f"{name}.tsv", ROWS) for name in ("train", "validation")}
    return TextTable(**given, prepared_dir=str(folder / "prepared"), **settings)


def other(data: TextTable, path: str) -> TextTable:
    return dataclasses.replace(data, path=path, train=None, validation=None, test=None)


def rows_of(found: Prepared, split: str) -> list[tuple[list[int], int]]:
    samples = found.split(split)
    return [(tokens_of(samples, place).tolist(), int(samples.labels[place])) for place in range(len(samples))]


def test_the_same_texts_become_the_same_samples(tmp_path: Path) -> None:
    data = table(tmp_path)
    known = prepare(data)
    found = prepare_benchmark(other(data, write(tmp_path / "again.tsv", ROWS)), known.encoding)
    assert dict(found.splits) == {"test": 4}
    assert rows_of(found, "test") == rows_of(known, "train")
    assert (found.labels, found.vocabulary_size) == (known.labels, known.vocabulary_size)


def test_words_that_training_lacks_are_unknown(tmp_path: Path) -> None:
    data = table(tmp_path)
    known = prepare(data)
    file = write(tmp_path / "new.tsv", [("zebra plot", "good")])
    ((tokens, label),) = rows_of(prepare_benchmark(other(data, file), known.encoding), "test")
    plot = rows_of(known, "train")[0][0][1]
    assert (tokens, label) == ([known.meta["unk_id"], plot], known.labels.index("good"))


def test_labels_keep_their_codes_though_only_the_last_one_occurs(tmp_path: Path) -> None:
    data = table(tmp_path)
    known = prepare(data)
    file = write(tmp_path / "new.tsv", [("plot", "good"), ("film", "so-so")])
    found = prepare_benchmark(other(data, file), known.encoding)
    assert [label for _, label in rows_of(found, "test")] == [1]
    assert found.meta["skipped"]["unknown_labels"]["rows"] == 1


def test_refused_labels_are_refused_here_too(tmp_path: Path) -> None:
    data = table(tmp_path, unknown_labels="refuse")
    known = prepare(data)
    file = write(tmp_path / "new.tsv", [("plot", "goood")])
    with pytest.raises(DataError, match=r"new\.tsv:2: label 'goood' .* did you mean 'good'"):
        prepare_benchmark(other(data, file), known.encoding)


def test_a_set_is_built_once_and_apart_for_every_vocabulary(tmp_path: Path) -> None:
    data = table(tmp_path)
    rare = dataclasses.replace(data, min_count=2)
    file = write(tmp_path / "new.tsv", [("warm plot", "good")])
    first = prepare_benchmark(other(data, file), prepare(data).encoding)
    again = prepare_benchmark(other(data, file), prepare(data).encoding)
    fewer = prepare_benchmark(other(rare, file), prepare(rare).encoding)
    assert (first.built, again.built, fewer.built) == (True, False, True)
    assert again.path == first.path != fewer.path


def test_the_database_tells_texts_and_lines(tmp_path: Path) -> None:
    data = table(tmp_path)
    found = prepare_benchmark(other(data, write(tmp_path / "again.tsv", ROWS)), prepare(data).encoding)
    assert found.split("test").texts([0, 3]) == ["warm plot", "slow scene"]
    found.verify()


def test_a_pretrained_tokenizer_may_have_gone_meanwhile(tmp_path: Path) -> None:
    """Or another one may lie in its place: the prepared set has kept its own."""
    bert = write_bert(tmp_path / "bert")
    config = json.loads((bert / "config.json").read_text())
    (bert / "config.json").write_text(json.dumps({**config, "pad_token_id": 4}))
    data = table(tmp_path, tokenizer="pretrained", tokenizer_path=str(bert))
    known = prepare(data)
    shutil.rmtree(bert)
    found = prepare_benchmark(other(data, write(tmp_path / "again.tsv", ROWS)), known.encoding)
    assert rows_of(found, "test") == rows_of(known, "train")
    assert found.pad_id == known.pad_id == 4
