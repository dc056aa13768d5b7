"""The dump: every line that came in, with the predictions beside its gold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.workloads.entity_disambiguation.artifacts.dump import Line, Prediction, among, write_dump
from toolkit.workloads.entity_disambiguation.data.entities.sentences import read_sentences

LINES: list[dict[str, Any]] = [
    {
        "sentence": "Müller saw the bank of the river",
        "sent_idx_unq": 7,
        "aliases": ["bank", "river"],
        "char_spans": [[15, 19], [27, 32]],
        "qids": ["Q1", "Q-1"],
        "gold": [True, False],
        "slices": {"verbs": {"0": 1.0, "1": 0.0}},
        "own": {"ключ": [1, 2.5, None, "a\u2028b"]},
    },
    {"sentence": "nothing", "sent_idx_unq": 3, "aliases": [], "char_spans": [], "qids": [], "gold": []},
]


def prediction(candidates: list[str], shares: list[float]) -> Prediction:
    return among(np.arange(len(candidates)), np.array(shares), dict(enumerate(candidates)))


def lines_of(path: Path, predictions: Any) -> Iterator[Line]:
    """Sentences of a file, with a prediction for each mention by its sentence's id and its place."""
    for sentence in read_sentences(path):
        places = range(len(sentence.mentions))
        yield sentence.record, [predictions(sentence.id, place) for place in places]


def dumped(folder: Path, predictions: Any) -> list[dict[str, Any]]:
    source, target = folder / "in.jsonl", folder / "artifacts" / "out.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in LINES), encoding="utf-8")
    write_dump(target, lines_of(source, predictions))
    return [json.loads(line) for line in target.read_text(encoding="utf-8").split("\n") if line]


def test_every_line_keeps_its_place_and_its_own_keys(tmp_path: Path) -> None:
    found = dumped(tmp_path, lambda sentence, place: None)
    assert [{key: value for key, value in line.items() if key != "predictions"} for line in found] == LINES
    assert [list(line) for line in found] == [[*line, "predictions"] for line in LINES]


def test_predictions_stand_beside_their_aliases(tmp_path: Path) -> None:
    bank = prediction(["Q2", "Q1"], [0.25, 0.75])
    found = dumped(tmp_path, lambda *key: {(7, 0): bank}.get(key))
    assert [line["predictions"] for line in found] == [
        [
            {"qid": "Q1", "probability": 0.75, "candidates": ["Q2", "Q1"], "probabilities": [0.25, 0.75]},
            None,
        ],
        [],
    ]


def test_a_dump_can_be_dumped_again(tmp_path: Path) -> None:
    dumped(tmp_path, lambda sentence, place: prediction(["Q1"], [1.0]))
    again = tmp_path / "again.jsonl"
    write_dump(again, lines_of(tmp_path / "artifacts" / "out.jsonl", lambda sentence, place: None))
    first = json.loads(again.read_text().split("\n")[0])
    assert first == {**LINES[0], "predictions": [None, None]}


def test_nothing_appears_where_a_line_is_broken(tmp_path: Path) -> None:
    def fail(sentence: int, place: int) -> None:
        raise RuntimeError("as if killed")

    with pytest.raises(RuntimeError):
        dumped(tmp_path, fail)
    assert list((tmp_path / "artifacts").iterdir()) == []


@settings(deadline=None)
@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=40))
def test_probabilities_that_sum_to_one_still_do_when_written(weights: list[float]) -> None:
    shares = [weight / sum(weights) for weight in weights]
    shown = prediction([f"Q{place}" for place in range(len(shares))], shares)
    assert sum(shown["probabilities"]) == pytest.approx(1, abs=1e-5)
    assert shown["qid"] == f"Q{shares.index(max(shares))}"
    assert shown["probability"] == max(shown["probabilities"])
