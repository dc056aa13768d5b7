"""Long texts as several samples: what is stored, and their splits."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from tests.toolkit.nlp.tokenizers.pieces import PIECES, SENTENCE, bare, bert, byte_level, token_numbers
from tests.toolkit.support.tiny import query
from tests.toolkit.workloads.text_classification.data.films import tokens_of, write_table
from toolkit.data.provenance import origins
from toolkit.errors import DataError
from toolkit.nlp.tokenizers.pretrained import PretrainedEncoder
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.prepared import Prepared, prepare


@pytest.fixture
def letters(tmp_path: Path) -> TextTable:
    """A text of twelve words and fourteen pieces, and one of two words, with a tokenizer like BERT's."""
    return TextTable(
        train=write_table(tmp_path / "train.tsv", [(SENTENCE, "left"), ("good film", "right")]),
        validation=write_table(tmp_path / "dev.tsv", [("bad film", "left")]),
        tokenizer="pretrained",
        tokenizer_path=bert(tmp_path / "bert"),
        prepared_dir=str(tmp_path / "prepared"),
        fold="wordpiece",
    )


@pytest.fixture
def mails(tmp_path: Path) -> TextTable:
    """60 texts of 1 to 20 words in one file, two thirds of them ham."""
    rows = [
        (" ".join(f"w{word}" for word in range(1 + n * 7 % 20)), "ham" if n % 3 else "spam")
        for n in range(60)
    ]
    return TextTable(
        path=write_table(tmp_path / "mails.tsv", rows),
        max_tokens=4,
        fold="word",
        splits={"train": 0.7, "validation": 0.2, "test": 0.1},
        prepared_dir=str(tmp_path / "prepared"),
    )


# -- golden values ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "max_tokens, lengths",
    [(128, [16]), (16, [16]), (15, [15, 3]), (6, [6, 6, 6, 4]), (4, [4] * 7), (3, [3] * 14)],
)
def test_fourteen_pieces_become_fragments_of_the_golden_lengths(
    letters: TextTable, max_tokens: int, lengths: list[int]
) -> None:
    prepared = prepare(dataclasses.replace(letters, max_tokens=max_tokens))
    assert query(prepared, "SELECT fragment, mask_length, label FROM samples WHERE text_id = 0") == [
        (fragment, length, 0) for fragment, length in enumerate(lengths)
    ]


def test_every_fragment_is_between_special_tokens(letters: TextTable) -> None:
    prepared = prepare(dataclasses.replace(letters, max_tokens=6))
    train, names = (
        prepared.split("train"),
        Tokenizer.from_file(f"{letters.tokenizer_path}/tokenizer.json").id_to_token,
    )
    found = [[names(token) for token in tokens_of(train, sample)] for sample in range(4)]
    assert found == [["[CLS]", *PIECES[start : start + 4], "[SEP]"] for start in range(0, 14, 4)]


def test_long_text_without_folding_is_cut_off_and_counted(letters: TextTable) -> None:
    prepared = prepare(dataclasses.replace(letters, max_tokens=6, fold="none"))
    assert [line for line in prepared.notes if "cut 1 of 3 texts" in line and "data.max_tokens" in line]
    train = prepared.split("train")
    assert train.lengths.tolist() == [6, 4]
    assert tokens_of(train, 0)[-1] == tokens_of(train, 1)[-1]
    assert train.texts([0]) == [SENTENCE]


@pytest.mark.parametrize("unit", ["wordpiece", "word", "sentence"])
@pytest.mark.parametrize("make", [bert, byte_level, bare])
def test_each_token_of_a_text_is_in_one_fragment(
    letters: TextTable, tmp_path: Path, make: Callable[[Path], str], unit: str
) -> None:
    text = "aa the  ab. The hem ba!\u00a0bb aa 'ab.' ba bb"
    data = dataclasses.replace(
        letters,
        train=write_table(tmp_path / "train.tsv", [(text, "left")]),
        tokenizer_path=make(tmp_path / "model"),
        max_tokens=7,
        fold=unit,
    )
    train, using = prepare(data).split("train"), PretrainedEncoder(str(data.tokenizer_path), 7)
    (numbers,) = token_numbers(using.encode([text]))
    inner = slice(len(using.before), -len(using.after) or None)
    assert [token for sample in range(len(train)) for token in tokens_of(train, sample)[inner]] == numbers
    assert len(train) > 1
    own = train.texts(range(len(train)))
    assert "".join("".join(own).split()) == "".join(text.split())
    assert own == [each.strip() for each in own]


@pytest.mark.skipif("STK_MINILM" not in os.environ, reason="STK_MINILM names no folder with a real tokenizer")
def test_a_real_tokenizer_gives_the_golden_values(letters: TextTable) -> None:
    data = dataclasses.replace(letters, tokenizer_path=os.environ["STK_MINILM"])
    for max_tokens, lengths in ((128, [16]), (6, [6, 6, 6, 4]), (4, [4] * 7)):
        prepared = prepare(dataclasses.replace(data, max_tokens=max_tokens))
        assert query(prepared, "SELECT mask_length FROM samples WHERE text_id = 0") == [(n,) for n in lengths]


# -- what is stored --------------------------------------------------------------------------------


def test_the_database_has_the_tokens_that_training_reads(letters: TextTable) -> None:
    prepared = prepare(dataclasses.replace(letters, max_tokens=6))
    train = prepared.split("train")
    stored = dict(query(prepared, "SELECT sample_id, tok_ids FROM Samples"))
    assert [stored[int(train.ids[sample])] for sample in range(5)] == [
        str(tokens_of(train, sample).tolist()) for sample in range(5)
    ]


def test_a_fragment_has_its_part_of_the_text_and_its_origin(letters: TextTable) -> None:
    prepared = prepare(dataclasses.replace(letters, max_tokens=6))
    train = prepared.split("train")
    assert train.text_ids.tolist() == [0, 0, 0, 0, 1]
    assert train.texts(range(5)) == [
        "the old letter was", "opened, twice and", "then read aloud at", "dinner.", "good film"
    ]  # fmt: skip
    assert train.whole_texts([1, 0, 2]) == ["good film", SENTENCE, "bad film"]
    assert prepared.split("validation").text_ids.tolist() == [2]
    assert str(origins(train, np.array([3]))[0]) == f"sample 3 ({letters.train}:2) [left] dinner."


def test_the_text_of_a_fragment_is_cut_from_the_unchanged_text(tmp_path: Path) -> None:
    """The lower case of İ has one more character, and an emoji is one character in SQLite too."""
    data = TextTable(
        train=write_table(tmp_path / "train.tsv", [("İİ 🙂 Größe Ende", "x")]),
        validation=write_table(tmp_path / "dev.tsv", [("a", "x")]),
        tokenizer="whitespace",
        max_tokens=2,
        fold="word",
        prepared_dir=str(tmp_path),
    )
    assert prepare(data).split("train").texts([0, 1]) == ["İİ 🙂", "Größe Ende"]


def test_queries_of_bert_train_parallel_work(letters: TextTable) -> None:
    prepared = prepare(dataclasses.replace(letters, max_tokens=6))
    assert query(prepared, "SELECT key_col, val_col FROM LabelEncodings") == [("0", "left"), ("1", "right")]
    assert query(prepared, "SELECT sample_id FROM TrainQueue") == [(sample,) for sample in range(5)]
    assert query(prepared, "SELECT sample_id FROM ValidateQueue") == [(5,)]
    assert query(prepared, "SELECT sample_id FROM TestQueue") == []
    assert query(
        prepared,
        "SELECT val_col, COUNT(*) FROM TrainQueue "
        "LEFT JOIN Samples ON TrainQueue.sample_id = Samples.sample_id "
        "LEFT JOIN LabelEncodings ON Samples.label = LabelEncodings.key_col GROUP BY val_col",
    ) == [("left", 4), ("right", 1)]


def test_the_tokenizer_is_kept_in_the_set(letters: TextTable) -> None:
    prepared = prepare(letters)
    assert [file.name for file in prepared.tokenizer_files] == ["tokenizer.json", "tokenizer_config.json"]
    for file in prepared.tokenizer_files:
        assert file.read_bytes() == (Path(str(letters.tokenizer_path)) / file.name).read_bytes()
    (vocabulary,) = prepare(dataclasses.replace(letters, tokenizer="words")).tokenizer_files
    assert vocabulary.name == "vocabulary.json"
    assert query(prepared, "SELECT id, token, count FROM tokens WHERE token IN ('[CLS]', 'film', 'bad')") == [
        (2, "[CLS]", 2), (20, "bad", 0), (21, "film", 1)
    ]  # fmt: skip
    assert (prepared.meta["pad_id"], prepared.meta["unk_id"]) == (0, 1)
    assert prepared.encoding.vocabulary_size == len(query(prepared, "SELECT * FROM tokens"))
    with pytest.raises(DataError, match="no vocabulary can be read"):
        prepared.vocabulary()


def test_a_second_preparation_tokenizes_nothing(letters: TextTable) -> None:
    told: list[str] = []
    first = prepare(letters)
    second = prepare(letters, lambda stage, done, total: told.append(stage))
    assert (first.built, second.built) == (True, False)
    assert set(told) == {"hash"}


def test_another_tokenizer_is_another_set_and_a_copy_of_it_is_not(letters: TextTable, tmp_path: Path) -> None:
    known = prepare(letters)
    other = prepare(dataclasses.replace(letters, tokenizer_path=bert(tmp_path / "other", padding="c")))
    copy = prepare(dataclasses.replace(letters, tokenizer_path=bert(tmp_path / "copy")))
    assert other.fingerprint != known.fingerprint == copy.fingerprint
    assert not copy.built


def test_more_tokens_than_a_block_are_stored_correctly(tmp_path: Path) -> None:
    texts = [" ".join(f"w{(text * 31 + word) % 997}" for word in range(700)) for text in range(500)]
    data = TextTable(
        train=write_table(tmp_path / "train.tsv", [(text, "x") for text in texts]),
        validation=write_table(tmp_path / "dev.tsv", [("w1", "x")]),
        max_tokens=64,
        fold="wordpiece",
        prepared_dir=str(tmp_path),
    )
    prepared = prepare(data)
    train, names = prepared.split("train"), prepared.vocabulary().decode
    assert prepared.meta["tokens"] > 1 << 18
    for text in (0, 250, 499):
        parts = np.flatnonzero(train.text_ids == text)
        assert train.lengths[parts].tolist() == [64] * 10 + [60]
        assert " ".join(token for part in parts for token in names(tokens_of(train, part))) == texts[text]
        assert " ".join(train.texts(parts)) == texts[text]


# -- splits ----------------------------------------------------------------------------------------


def text_splits(prepared: Prepared) -> dict[str, set[int]]:
    return {split: set(prepared.split(split).text_ids.tolist()) for split in prepared.splits}


@pytest.mark.parametrize("stratify", [False, True])
def test_all_fragments_of_a_text_are_in_one_split(mails: TextTable, stratify: bool) -> None:
    prepared = prepare(dataclasses.replace(mails, stratify=stratify))
    texts = text_splits(prepared)
    assert [len(each) for each in texts.values()] == [42, 12, 6]
    assert sum(len(each) for each in texts.values()) == len(set.union(*texts.values())) == 60
    assert sum(prepared.splits.values()) == prepared.meta["samples"] > 60
    assert query(
        prepared, "SELECT count(*) FROM texts JOIN samples ON text_id = id WHERE texts.split <> samples.split"
    ) == [(0,)]


def test_stratified_splits_have_the_same_share_of_each_label(mails: TextTable) -> None:
    prepared = prepare(dataclasses.replace(mails, stratify=True))
    assert query(prepared, "SELECT split, texts FROM label_counts WHERE label = 1") == [
        ("train", 14), ("validation", 4), ("test", 2)
    ]  # fmt: skip


@pytest.mark.parametrize("stratify", [False, True])
def test_fragments_can_be_split_instead_of_texts(mails: TextTable, stratify: bool) -> None:
    prepared = prepare(dataclasses.replace(mails, split_unit="fragment", stratify=stratify))
    total = prepared.meta["samples"]
    for split, share in mails.splits.items():
        assert abs(prepared.splits[split] - share * total) <= 1
    texts = text_splits(prepared)
    assert texts["train"] & texts["test"]
    assert query(prepared, "SELECT DISTINCT split FROM texts") == [(None,)]
    ids = np.concatenate([prepared.split(split).ids for split in prepared.splits])
    assert sorted(ids.tolist()) == list(range(total))
    if stratify:
        spam = query(prepared, "SELECT samples FROM label_counts WHERE label = 1")
        whole = sum(count for (count,) in spam)
        for (count,), share in zip(spam, mails.splits.values(), strict=True):
            assert abs(count - whole * share) <= 2


def test_only_the_seed_decides_the_splits(mails: TextTable, tmp_path: Path) -> None:
    first = text_splits(prepare(mails))
    again = text_splits(prepare(dataclasses.replace(mails, prepared_dir=str(tmp_path / "again"))))
    other = text_splits(prepare(dataclasses.replace(mails, split_seed=1)))
    folded_otherwise = text_splits(prepare(dataclasses.replace(mails, max_tokens=16)))
    assert first == again == folded_otherwise
    assert first != other


# -- real tables -----------------------------------------------------------------------------------


@pytest.mark.skipif("STK_REFERENCE_DATA" not in os.environ, reason="STK_REFERENCE_DATA names no folder")
def test_all_of_sst_2_is_read_without_a_header(tmp_path: Path) -> None:
    folder = Path(os.environ["STK_REFERENCE_DATA"]).absolute() / "sst2"
    data = TextTable(
        train=str(folder / "train.tsv"),
        validation=str(folder / "dev.tsv"),
        test=str(folder / "test.tsv"),
        columns=("text", "label"),
        tokenizer="whitespace",
        prepared_dir=str(tmp_path),
    )
    prepared = prepare(data)
    assert prepared.splits == {"train": 6920, "validation": 872, "test": 1821}
    assert prepared.labels == ("0", "1")
    assert prepared.meta["skipped"]["unknown_labels"]["rows"] == 0
    assert prepared.split("validation").texts([0]) == ["one long string of cliches"]
