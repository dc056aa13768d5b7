"""A hash of the text that a sentence is from decides its split."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.toolkit.workloads.entity_disambiguation.data.entities.files import record, write
from toolkit.errors import DataError
from toolkit.workloads.entity_disambiguation.data.entities.division import percentile, split_of
from toolkit.workloads.entity_disambiguation.data.entities.rewriting import SPLIT_FILES, divide
from toolkit.workloads.entity_disambiguation.data.entities.sentences import Sentence, read_sentences


def sentence(source: tuple[str, str] | None, number: int = 0, **keys: int) -> Sentence:
    return Sentence(id=number, text="", mentions=(), source=source, line=1, record=keys)


@pytest.mark.parametrize(
    "source, expected",
    [(("Q85810192", "Tornadoes of 2020"), 55), (("Q3403125", "Prikro"), 42), (("Q1", "Universe"), 22)],
)
def test_percentiles_are_those_of_bootleg_data_prep(source: tuple[str, str], expected: int) -> None:
    assert percentile(*source) == expected
    assert split_of(sentence(source), 10, "source") == "train"


@pytest.mark.parametrize(
    "percent, split", [(10, "train"), (11, "train"), (12, "validation"), (22, "validation"), (23, "test")]
)
def test_split_depends_on_the_percentile_and_the_percentage(percent: int, split: str) -> None:
    assert split_of(sentence(("Q1", "Universe")), percent, "source") == split


def test_division_by_sentence_spreads_a_text_over_all_splits() -> None:
    source = ("Q1", "Universe")
    together = {split_of(sentence(source, doc_sent_idx=place), 20, "source") for place in range(50)}
    apart = {split_of(sentence(source, doc_sent_idx=place), 20, "sentence") for place in range(50)}
    assert together == {"validation"}
    assert apart == {"test", "validation", "train"}
    for place in range(50):
        is_test = split_of(sentence(source, doc_sent_idx=place), 20, "sentence") == "test"
        assert is_test == (percentile(place, *source) < 20)


def test_sentences_without_a_source_are_assigned_by_their_ids() -> None:
    splits = Counter(split_of(sentence(None, number), 10, "source") for number in range(2000))
    assert splits["test"] == pytest.approx(200, abs=50)
    assert splits["validation"] == pytest.approx(200, abs=50)


def lines(path: Path) -> list[object]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def many(count: int) -> list[dict[str, object]]:
    return [record(sent_idx_unq=n, parent_qid=f"Q{n // 2}", extra=n) for n in range(count)]


def test_each_line_is_unchanged_in_one_shuffled_split(tmp_path: Path) -> None:
    path = write(tmp_path / "all.jsonl", many(400))
    sizes = divide(path, tmp_path / "out", 10, "source")
    parts = {split: lines(tmp_path / "out" / name) for split, name in SPLIT_FILES.items()}
    assert {split: len(part) for split, part in parts.items()} == sizes
    together = [each for part in parts.values() for each in part]
    assert together != many(400)
    assert sorted(together, key=lambda each: each["sent_idx_unq"]) == many(400)
    assert parts["train"] != sorted(parts["train"], key=lambda each: each["sent_idx_unq"])
    for split, name in SPLIT_FILES.items():
        found = list(read_sentences(tmp_path / "out" / name))
        assert {split_of(each, 10, "source") for each in found} == {split}


def test_dividing_again_writes_the_same_bytes(tmp_path: Path) -> None:
    path = write(tmp_path / "all.jsonl", many(100))
    for folder in ("one", "two"):
        divide(path, tmp_path / folder, 20, "source")
    for name in SPLIT_FILES.values():
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_last_line_without_a_line_end_gets_one(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text("\r\n".join(json.dumps(each) for each in many(100)))
    divide(path, tmp_path / "out", 20, "source")
    assert sum(len(lines(tmp_path / "out" / name)) for name in SPLIT_FILES.values()) == 100
    assert b"\r" not in (tmp_path / "out" / "train.jsonl").read_bytes()


def test_golds_of_training_are_counted_with_and_without_weak_labels(tmp_path: Path) -> None:
    sizes = divide(write(tmp_path / "all.jsonl", many(100)), tmp_path / "out", 20, "source")

    def counted(name: str) -> object:
        return json.loads((tmp_path / "out" / name).read_text())

    assert counted("qid2cnt.json") == {"Q1008": sizes["train"], "Q881": sizes["train"]}
    assert counted("qid2cnt_gold.json") == {"Q1008": sizes["train"]}
    assert counted("alias2qid_cnt.json")["vietnam"] == {"Q881": sizes["train"]}
    assert "vietnam" not in counted("alias2qid_cnt_gold.json")


def test_an_empty_split_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    path = write(tmp_path / "all.jsonl", [record()])
    with pytest.raises(DataError, match="no sentence falls into validation; give more sentences"):
        divide(path, tmp_path / "out", 10, "source")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", [*SPLIT_FILES.values(), "linked.jsonl"])
def test_a_file_that_a_split_would_replace_is_refused_and_stays(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "linked.jsonl":
        path.symlink_to(tmp_path / "train.jsonl")
    write(path, many(100))
    before = path.read_bytes()
    with pytest.raises(DataError, match=r"would be replaced by the split .* write into another folder"):
        divide(path, tmp_path, 20, "source")
    assert path.read_bytes() == before


def test_the_byte_order_mark_of_a_file_is_in_none_of_its_splits(tmp_path: Path) -> None:
    path = write(tmp_path / "all.jsonl", many(100))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    divide(path, tmp_path / "out", 20, "source")
    assert not [name for name in SPLIT_FILES.values() if b"\xef" in (tmp_path / "out" / name).read_bytes()]
