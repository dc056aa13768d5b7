"""A file for scoring is prepared with the labels and tokens of a training set."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.support.bert import write_bert
from tests.toolkit.workloads.text_classification.data.films import tokens_of, write_table
from toolkit.errors import DataError
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.checks import table_violations
from toolkit.workloads.text_classification.data.prepared import Prepared, prepare

ROWS = [("warm plot", "good"), ("dull plot", "bad"), ("bright film", "good"), ("slow scene", "bad")]


def table(folder: Path, **settings: Any) -> TextTable:
    given = {name: write_table(folder / f"{name}.tsv", ROWS) for name in ("train", "validation")}
    return TextTable(**given, prepared_dir=str(folder / "prepared"), **settings)


def other(data: TextTable, rows: list[tuple[str, str]]) -> TextTable:
    """The section with a file of these rows, to be scored, in place of its own files."""
    path = write_table(Path(data.prepared_dir).with_name("other.tsv"), rows)
    return dataclasses.replace(data, path=path, train=None, validation=None, test=None)


def rows_of(found: Prepared, split: str) -> list[tuple[list[int], int]]:
    samples = found.split(split)
    return [(tokens_of(samples, place).tolist(), int(samples.labels[place])) for place in range(len(samples))]


def test_the_same_texts_give_the_same_samples(tmp_path: Path) -> None:
    data = table(tmp_path)
    known = prepare(data)
    found = prepare(other(data, ROWS), known=known.encoding)
    assert dict(found.splits) == {"test": 4}
    assert rows_of(found, "test") == rows_of(known, "train")
    assert dataclasses.replace(found.encoding, folder=known.path) == known.encoding


def test_words_that_training_lacks_are_unknown(tmp_path: Path) -> None:
    data = table(tmp_path)
    known = prepare(data)
    found = prepare(other(data, [("zebra plot", "good")]), known=known.encoding)
    plot = rows_of(known, "train")[0][0][1]
    assert rows_of(found, "test") == [([known.meta["unk_id"], plot], known.labels.index("good"))]


def test_labels_keep_their_codes_if_only_the_last_label_occurs(tmp_path: Path) -> None:
    data = table(tmp_path)
    found = prepare(other(data, [("plot", "good"), ("film", "so-so")]), known=prepare(data).encoding)
    assert [label for _, label in rows_of(found, "test")] == [1]
    assert found.meta["skipped"]["unknown_labels"]["rows"] == 1


def test_unknown_labels_can_be_refused_in_a_scored_file(tmp_path: Path) -> None:
    data = table(tmp_path, unknown_labels="refuse")
    known = prepare(data)
    with pytest.raises(DataError, match=r"other\.tsv:2: label 'goood' .* did you mean 'good'"):
        prepare(other(data, [("plot", "goood")]), known=known.encoding)


def test_advice_for_a_scored_file_with_other_labels_does_not_name_data_labels(tmp_path: Path) -> None:
    """The labels of a finished run cannot be set."""
    data = table(tmp_path)
    known, scored = prepare(data), other(data, [("plot", "1"), ("film", "2")])
    with pytest.raises(DataError) as caught:
        prepare(scored, known=known.encoding)
    (early,) = table_violations(dataclasses.replace(scored, labels=known.labels), is_trained=True)
    for told in (str(caught.value), early.problem):
        assert "no row has one of the labels" in told
        assert "Set data.labels" not in told


def test_each_vocabulary_has_its_own_set_which_is_built_once(tmp_path: Path) -> None:
    data = table(tmp_path)
    rare = dataclasses.replace(data, min_count=2)
    rows = [("warm plot", "good")]
    first = prepare(other(data, rows), known=prepare(data).encoding)
    again = prepare(other(data, rows), known=prepare(data).encoding)
    fewer = prepare(other(rare, rows), known=prepare(rare).encoding)
    assert (first.built, again.built, fewer.built) == (True, False, True)
    assert again.path == first.path != fewer.path


def test_a_pretrained_tokenizer_may_be_deleted_after_training(tmp_path: Path) -> None:
    """The prepared set has a copy."""
    bert = write_bert(tmp_path / "bert")
    config = json.loads((bert / "config.json").read_text())
    (bert / "config.json").write_text(json.dumps({**config, "pad_token_id": 4}))
    data = table(tmp_path, tokenizer="pretrained", tokenizer_path=str(bert))
    known = prepare(data)
    shutil.rmtree(bert)
    found = prepare(other(data, ROWS), known=known.encoding)
    assert rows_of(found, "test") == rows_of(known, "train")
    assert found.encoding.pad_id == known.encoding.pad_id == 4
