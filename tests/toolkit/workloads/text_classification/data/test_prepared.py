"""A prepared set has the content of its sources."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.toolkit.support.tiny import query
from tests.toolkit.workloads.text_classification.data.films import some_rows, tokens_of, write_table
from toolkit.nlp.tokens import UNK_ID, tokenizer
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.prepared import prepare
from toolkit.workloads.text_classification.data.samples import pad_batch

# -- what it holds ---------------------------------------------------------------------------------


def test_every_row_is_in_one_split_with_its_text_label_and_tokens(table: TextTable) -> None:
    prepared = prepare(table)
    cut, vocabulary = tokenizer("words", lowercase=True), prepared.vocabulary()
    found = {}
    for split in ("train", "validation", "test"):
        samples = prepared.split(split)
        assert len(samples) == prepared.splits[split]
        texts = samples.texts(range(len(samples)))
        for index, text in enumerate(texts):
            assert tokens_of(samples, index).tolist() == vocabulary.encode(cut(text)).tolist()
            assert samples.lengths[index] == len(cut(text))
            found[int(samples.ids[index])] = (text, prepared.labels[samples.labels[index]])
    assert [found[sample] for sample in range(60)] == some_rows(60)
    assert prepared.splits == {"train": 48, "validation": 6, "test": 6}


def test_three_files_are_the_three_splits(three_files: TextTable) -> None:
    prepared = prepare(three_files)
    assert prepared.splits == {"train": 3, "validation": 2, "test": 1}
    assert prepared.labels == ("no", "yes")
    assert prepared.split("train").labels.tolist() == [1, 1, 0]
    assert prepared.split("validation").texts([1, 0, 1]) == ["c", "a unseen", "c"]


def test_the_vocabulary_is_from_the_training_split(three_files: TextTable) -> None:
    prepared = prepare(three_files)
    assert prepared.vocabulary().tokens == ("c", "a", "b")
    assert prepared.encoding.vocabulary_size == 5
    assert tokens_of(prepared.split("validation"), 0).tolist() == [3, UNK_ID]


def test_the_database_can_be_queried(three_files: TextTable) -> None:
    prepared = prepare(three_files)
    assert query(
        prepared,
        "SELECT line, text, name, mask_length, samples.split FROM samples JOIN texts ON text_id = texts.id "
        "JOIN labels ON samples.label = labels.id",
    )[1:4] == [
        (4, "b c c c", "yes", 4, "train"),
        (5, "c", "no", 1, "train"),
        (2, "a unseen", "no", 2, "validation"),
    ]
    assert query(prepared, "SELECT token, count FROM tokens") == [
        ("<pad>", 0), ("<unk>", 0), ("c", 4), ("a", 2), ("b", 2)
    ]  # fmt: skip
    assert query(
        prepared, "SELECT split, name, texts, samples FROM label_counts JOIN labels ON label = id"
    ) == [
        ("train", "no", 1, 1), ("train", "yes", 2, 2),
        ("validation", "no", 1, 1), ("validation", "yes", 1, 1),
        ("test", "no", 1, 1), ("test", "yes", 0, 0),
    ]  # fmt: skip
    assert query(prepared, "SELECT file, rows FROM sources") == [
        (three_files.train, 4), (three_files.validation, 2), (three_files.test, 1)
    ]  # fmt: skip


def test_more_rows_than_a_batch_and_more_tokens_than_16_bits_are_stored_correctly(tmp_path: Path) -> None:
    rows = [(f"w{i}a w{i}b w{i}c w{i}d", "ab"[i % 2]) for i in range(20_000)]
    data = TextTable(
        train=write_table(tmp_path / "train.tsv", rows),
        validation=write_table(tmp_path / "dev.tsv", rows[:1]),
        prepared_dir=str(tmp_path),
    )
    prepared = prepare(data)
    train = prepared.split("train")
    assert prepared.encoding.vocabulary_size == 80_002
    assert tokens_of(train, 0).dtype == np.uint32
    names = prepared.vocabulary().decode
    assert all(" ".join(names(tokens_of(train, i))) == rows[i][0] for i in (0, 8191, 8192, 16_384, 19_999))
    tokens, _, labels = pad_batch(train, [19_999, 0])
    assert [" ".join(names(row)) for row in tokens] == [rows[19_999][0], rows[0][0]]
    assert labels.tolist() == [1, 0]


def test_arrays_are_plain_and_read_only(table: TextTable) -> None:
    samples = prepare(table).split("train")
    for array in (samples.ids, samples.lengths, samples.labels, samples.tokens.values, tokens_of(samples, 0)):
        assert type(array) is np.ndarray
        assert not array.flags.writeable


def test_a_split_without_samples_is_empty(table: TextTable) -> None:
    data = dataclasses.replace(table, splits={"train": 1, "validation": 1, "test": 0})
    test_split = prepare(data).split("test")
    assert len(test_split) == 0
    assert test_split.texts([]) == []


# -- the key ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [
        {"lowercase": False},
        {"tokenizer": "whitespace"},
        {"min_count": 2},
        {"max_vocabulary": 5},
        {"max_tokens": 3},
        {"split_seed": 1},
        {"stratify": True},
        {"splits": {"train": 2, "validation": 1}},
        {"labels": ("positive", "negative")},
        {"fold": "word"},
        {"split_unit": "fragment"},
        {"unknown_labels": "refuse"},
    ],
)
def test_every_setting_that_matters_makes_another_set(table: TextTable, changed: dict[str, Any]) -> None:
    other = prepare(dataclasses.replace(table, **changed))
    assert other.built
    assert other.fingerprint != prepare(table).fingerprint


def test_two_builds_give_the_same_files(table: TextTable, tmp_path: Path) -> None:
    one = prepare(table)
    other = prepare(dataclasses.replace(table, prepared_dir=str(tmp_path / "other")))
    assert one.fingerprint == other.fingerprint
    assert one.meta["files"] == other.meta["files"]
