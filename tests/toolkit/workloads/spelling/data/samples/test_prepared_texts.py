"""The contents of prepared sets of texts, and how a set is found again."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.toolkit.support.tiny import query as rows
from tests.toolkit.workloads.spelling.data.samples.conftest import Make, row
from tests.toolkit.workloads.spelling.spelling_files import WORDS, texts, write_pairs, write_texts
from toolkit.data.provenance import origins
from toolkit.data.sources.file_digests import memory_of
from toolkit.errors import DataError
from toolkit.workloads.spelling.config.noise import NoNoise
from toolkit.workloads.spelling.data.noise.from_config import noise_of
from toolkit.workloads.spelling.data.noise.noise import Sample, generator
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.prepared import SpellingSet, prepare
from toolkit.workloads.spelling.data.samples.sources import Source, describe, find_sources
from toolkit.workloads.spelling.data.texts.features import FEATURES, RealWords, WordFeatures
from toolkit.workloads.spelling.data.texts.words import pieces_of, word_labels
from toolkit.workloads.spelling.tokenizers.tokenizer import load_tokenizer


def words_wrong(prepared: SpellingSet, split: str) -> list[list[int]]:
    return [row(prepared, layout.LABELS, index, split) for index in range(prepared.splits[split])]


def test_texts_are_divided_into_splits_and_labelled_by_their_errors(make: Make) -> None:
    prepared = prepare(make())
    assert prepared.splits == {"train": 61, "validation": 23, "test": 11}
    for split in prepared.splits:
        query = f"SELECT text, target FROM samples WHERE split = '{split}' ORDER BY sample_id"
        assert words_wrong(prepared, split) == [word_labels(*pair) for pair in rows(prepared, query)]
    clean = {target for (target,) in rows(prepared, "SELECT target FROM samples WHERE split != 'test'")}
    assert clean == set(texts(84))
    assert rows(prepared, "SELECT count(*) FROM samples WHERE errors > 0")[0][0] > 60


def test_the_errors_of_a_text_are_those_of_its_noise(make: Make) -> None:
    data = make()
    prepared = prepare(data)
    seed = Source.open(data.datasets[0], None, lambda *_: None, memory_of(data)).seed(data.noise_seed)
    query = "SELECT text, line FROM samples WHERE split != 'test' ORDER BY line"
    for (found, line), text in zip(rows(prepared, query), texts(84), strict=True):
        made = noise_of(data.noise)(Sample.of(text), generator(seed, line - 1))
        assert found == made.text


def test_tokens_pieces_and_words_fit_the_text(make: Make) -> None:
    data = make(noise=NoNoise())
    prepared = prepare(data)
    tokenizer, samples = load_tokenizer(Path(data.tokenizer_path)), prepared.split("test")
    features = WordFeatures(dict.fromkeys(WORDS, 5))
    for number, text in enumerate(texts(11, first=1000)):
        index = np.array([number])
        expected, word_of_piece = features.of(text.split())
        tokens, of_token = tokenizer.encode_words(text)
        assert samples.rows(layout.TOKENS, index, -1)[0].tolist() == [
            tokenizer.begin, *tokens, tokenizer.end,
        ]  # fmt: skip
        words = samples.rows(layout.WORDS, index, -1)[0]
        np.testing.assert_array_equal(words, word_of_piece)
        np.testing.assert_array_equal(samples.features(index)[0], expected)
        pieces = samples.rows(layout.PIECES, index, -1)[0]
        assert pieces[0] == pieces[-1] == layout.NO_PIECE
        np.testing.assert_array_equal(words[pieces[1:-1]], of_token)
        for place, piece in enumerate(pieces_of(text)):
            own = np.array(tokens)[pieces[1:-1] == place].tolist()
            assert tokenizer.decode(own).strip() == piece.text


def test_real_words_follow_the_rule_of_benchmarks(make: Make, tmp_path: Path) -> None:
    # The dictionary has river, but not River, and no punctuation beyond ASCII.
    lines = ["stone, rivr River x-stone river", "“stone” – stone’s «stone» (stone) ... stone… 4 stone4 stone"]
    path = write_texts(tmp_path / "own.txt", lines)
    samples = prepare(make(test=(str(path),), noise=NoNoise())).split("test")
    real = samples.real_words(np.arange(2))
    for line, found in zip(lines, real, strict=True):
        words = line.split()
        assert found[: len(words)].tolist() == RealWords(WORDS).of(words).tolist()
    assert real.sum(axis=1).tolist() == [2 + 5, 3]
    assert len(FEATURES) == samples.features(np.array([0])).shape[-1]


def test_a_limit_reduces_training_and_does_not_change_validation(make: Make) -> None:
    whole, limited = prepare(make()), prepare(make(dataset_limits=(20,)))
    assert limited.splits == {"train": 20, "validation": 23, "test": 11}
    query = "SELECT line, text FROM samples WHERE split = '{}'"
    for split in ("validation", "test"):
        assert rows(limited, query.format(split)) == rows(whole, query.format(split))
    assert set(rows(limited, query.format("train"))) < set(rows(whole, query.format("train")))


def test_training_texts_occur_once_for_each_draw(make: Make, small_shards: int) -> None:
    once, thrice = prepare(make()), prepare(make(noise_draws=3))
    assert thrice.splits == {**once.splits, "train": 3 * once.splits["train"]}
    query = "SELECT line, text, target FROM samples WHERE split = '{}'"
    for split in ("validation", "test"):
        assert rows(thrice, query.format(split)) == rows(once, query.format(split))
    first, drawn = (rows(found, query.format("train")) for found in (once, thrice))
    # Further draws have the same lines with other errors.
    assert sorted(set(first) & set(drawn)) == sorted(first)
    assert {(line, target) for line, _, target in drawn} == {(line, target) for line, _, target in first}
    texts_of_lines = {line: {text for other, text, _ in drawn if other == line} for line, _, _ in first}
    assert sum(map(len, texts_of_lines.values())) > 2.5 * len(first)


def test_the_fingerprint_with_one_draw_is_that_of_earlier_versions(make: Make) -> None:
    data = make()
    description = describe(data, find_sources(data, lambda *_: None), None)
    assert "noise_draws" not in description["settings"]
    assert {key for source in description["sources"] for key in source} == {"split", "sha256"}
    drawn = dataclasses.replace(data, noise_draws=2)
    assert describe(drawn, find_sources(drawn, lambda *_: None), None)["settings"]["noise_draws"] == 2


def test_pairs_and_empty_lines_occur_once_for_any_number_of_draws(make: Make, tmp_path: Path) -> None:
    records = [{"sequence": "a stoen", "target_sequence": "a stone"}, {"sequence": "the river"}]
    path = write_texts(tmp_path / "own.jsonl", [*map(json.dumps, records), ""] * 8)
    prepared = prepare(make(datasets=(str(path),), val_splits=(2,), noise_draws=3))
    query = "SELECT DISTINCT target, count(*) FROM samples WHERE split = 'train' GROUP BY line"
    assert sorted(rows(prepared, query)) == [("a stone", 1), ("the river", 3)]
    assert prepared.meta["left_out"] == {"empty": 8}
    assert "left out: 8 lines (empty)" in prepared.summary()


def test_a_data_set_that_cannot_be_divided_is_named(make: Make, tmp_path: Path) -> None:
    path = write_texts(tmp_path / "few.txt", texts(4))
    with pytest.raises(DataError, match=r"few\.txt has 4 samples, and data\.val_splits \(default 0\.1\)"):
        prepare(make(datasets=(str(path),), val_splits=None))


def test_errors_do_not_depend_on_other_data_sets(make: Make, tmp_path: Path) -> None:
    data = make()
    more = write_texts(tmp_path / "more.txt", texts(30, first=500))
    assert data.datasets is not None
    both = prepare(make(datasets=(str(more), *data.datasets), val_splits=(5, 23)))
    query = "SELECT line, samples.split, text FROM samples JOIN sources ON dataset = id WHERE file LIKE '%{}'"
    assert rows(both, query.format("texts.txt")) == rows(prepare(data), query.format("texts.txt"))
    assert Counter(split for _, split, _ in rows(both, query.format("more.txt"))) == {
        "train": 25,
        "validation": 5,
    }


def test_validation_may_have_separate_files(make: Make, language: Path) -> None:
    found = prepare(make(val_splits=None, validation=(str(language / "test.txt"),), test=None))
    assert found.splits == {"train": 84, "validation": 11}


def test_long_and_empty_lines_are_left_out_and_counted(make: Make, tmp_path: Path) -> None:
    lines = ["a stone", "", "river " * 110, "a bridge"]
    prepared = prepare(make(test=(str(write_texts(tmp_path / "own.txt", lines)),), noise=NoNoise()))
    assert prepared.splits["test"] == 2
    assert prepared.meta["left_out"] == {"empty": 1, "too long": 1}
    assert list(prepared.split("test").left_out()) == [(1, 1, ""), (1, 2, lines[2].strip())]
    assert "left out: 1 lines (too long)" in prepared.summary()


def test_words_of_a_pair_of_other_numbers_of_words_have_no_labels(make: Make, tmp_path: Path) -> None:
    pairs = {"alot of stone": "a lot of stone", "the ri ver": "the river", "a stoen": "a stone"}
    records = [{"sequence": text, "target_sequence": target} for text, target in pairs.items()]
    path = write_texts(tmp_path / "own.jsonl", [*map(json.dumps, records)])
    prepared = prepare(make(test=(str(path),)))
    assert words_wrong(prepared, "test") == [[layout.UNKNOWN] * 3] * 2 + [[0, 1]]
    assert prepared.split("test").errors.tolist() == [1, 1, 1]
    assert "wrong words not known: 2 texts of test" in prepared.summary()
    assert "not known" not in prepare(make()).summary()


@pytest.mark.parametrize(
    "golds, words, errors",
    [
        (["0 1", "0 0"], [[0, 1], [0, 0]], [1, 0]),
        (["\ufeff0 1", "0 0"], [[0, 1], [0, 0]], [1, 0]),
        (["a stone", "the river"], [[0, 1], [0, 0]], [1, 0]),
        (["1 stone", "the river garden"], [[1, 1], [layout.UNKNOWN] * 2], [1, 1]),
        (["1", "0"], [[layout.UNKNOWN] * 2] * 2, [1, 0]),
    ],
)
def test_folders_of_benchmarks_have_targets_or_labels(
    make: Make, tmp_path: Path, golds: list[str], words: list[list[int]], errors: list[int]
) -> None:
    write_pairs(tmp_path, ["a stoen", "the river"], golds)
    prepared = prepare(make(test=(str(tmp_path),)))
    assert words_wrong(prepared, "test") == words
    assert prepared.split("test").errors.tolist() == errors
    texts_found = rows(prepared, "SELECT text FROM samples WHERE split = 'test'")
    assert texts_found == [("a stoen",), ("the river",)]


@pytest.mark.parametrize(
    "content, said",
    [("river " * 200, "own.txt: no text for test is left, expected at least one"), (None, "cannot be read")],
)
def test_a_file_without_usable_texts_is_refused(
    make: Make, tmp_path: Path, content: str | None, said: str
) -> None:
    path = tmp_path / "own.txt"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DataError, match=said):
        prepare(make(test=(str(path),)))
    assert not list((tmp_path / "prepared").glob("[!.]*"))


def test_tokens_of_targets_are_kept_for_correction(make: Make) -> None:
    data = make()
    prepared = prepare(dataclasses.replace(data, output_tokenizer_path=data.tokenizer_path))
    tokenizer = load_tokenizer(Path(data.tokenizer_path))
    for number, text in enumerate(texts(11, first=1000)):
        tokens, words = tokenizer.encode_words(text)
        assert row(prepared, layout.OUTPUTS, number, "test") == tokens
        assert row(prepared, layout.OUTPUT_WORDS, number, "test") == words


def test_set_is_reused_unless_a_setting_changes_its_content(make: Make) -> None:
    first, again = prepare(make()), prepare(make(workers=3))
    assert (first.built, again.built) == (True, False)
    assert again.path == first.path
    for settings in ({"noise_seed": 1}, {"split_seed": 1}, {"max_length": 50}, {"dictionary": None}):
        assert prepare(make(**settings)).fingerprint != first.fingerprint


def test_a_file_that_gets_the_name_of_records_gives_another_set(make: Make, tmp_path: Path) -> None:
    path = write_texts(tmp_path / "own.txt", [json.dumps({"sequence": "a stone"})] * 3)
    before = prepare(make(test=(str(path),)))
    renamed = path.rename(path.with_suffix(".json"))
    after = prepare(make(test=(str(renamed),)))
    assert after.built
    assert after.fingerprint != before.fingerprint
    assert {words for (words,) in rows(after, "SELECT words FROM samples WHERE split = 'test'")} == {2}


def test_sample_has_the_file_and_line_of_its_origin(make: Make) -> None:
    samples = prepare(make()).split("test")
    (origin,) = origins(samples, np.array([4]))
    assert (Path(origin.file).name, origin.line) == ("test.txt", 5)


def test_sample_without_a_row_is_named_by_its_number(make: Make) -> None:
    prepared = prepare(make())
    with closing(sqlite3.connect(prepared.database)) as connection, connection:
        connection.execute("DELETE FROM samples")
    assert [*map(str, origins(prepared.split("test"), np.array([0, 3])))] == ["sample 0", "sample 3"]
