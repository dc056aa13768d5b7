"""Lines of a split with the predictions of a model."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toolkit.workloads.entity_disambiguation.entity_files import line, tiny_entities, write_lines
from toolkit.errors import DataError
from toolkit.workloads.entity_disambiguation.artifacts import among, predicted_lines
from toolkit.workloads.entity_disambiguation.data.samples.prepared import prepare
from toolkit.workloads.entity_disambiguation.data.samples.samples import MentionSamples

NAMES = ("arn", "bel", "cor", "dun", "esk", "fal")


def samples_of(
    folder: Path, records: Sequence[dict[str, Any]], split: str, *overrides: str
) -> MentionSamples:
    """The samples of a split of one file, cut by its sentences."""
    file = write_lines(folder / "all.jsonl", records)
    files = (f"data.path={file}", "data.train=", "data.validation=", "data.test=", "data.split_by=sentence")
    return prepare(tiny_entities(folder, *files, *overrides).data).split(split)


def numbered(samples: MentionSamples) -> np.ndarray[Any, Any]:
    """Different probabilities for each sample: that of the first candidate increases."""
    shares = np.zeros((len(samples), samples.tables.candidates.shape[1]), dtype=np.float32)
    shares[:, 0] = 1 - 0.1 / (1 + np.arange(len(samples)))
    shares[:, 1] = 1 - shares[:, 0]
    return shares


def records(count: int) -> list[dict[str, Any]]:
    """Sentences with zero to three mentions."""
    return [
        line(number, [(NAMES[(number + place) % 6], "river") for place in range(number % 4)], parent=number)
        for number in range(count)
    ]


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_lines_of_a_split_keep_their_order_and_each_mention_has_its_prediction(
    tmp_path: Path, split: str
) -> None:
    everything = records(300)
    samples = samples_of(tmp_path, [{**each, "predictions": "earlier"} for each in everything], split)
    found = list(predicted_lines(samples, numbered(samples)))
    predictions = [record.pop("predictions") for record in found]
    numbers = [record["sent_idx_unq"] for record in found]
    assert numbers == sorted(numbers)
    assert found == [everything[number] for number in numbers]
    assert [len(parallel) for parallel in predictions] == [number % 4 for number in numbers]
    said = [each for parallel in predictions for each in parallel if each is not None]
    assert len(said) == len(samples) == sum(number % 4 for number in numbers)
    expected = (1 - 0.1 / (1 + np.arange(len(samples)))).tolist()
    assert [each["probability"] for each in said] == pytest.approx(expected, abs=1e-7)
    aliases = [alias for record in found for alias in record["aliases"]]
    assert [each["qid"] for each in said] == [f"{alias}.river" for alias in aliases]


def test_a_mention_that_training_left_out_has_no_prediction(tmp_path: Path) -> None:
    weak = [
        line(number, [("arn", "river"), ("bel", "town"), ("cor", "ship")], gold=[True, False, True])
        for number in range(30)
    ]
    samples = samples_of(tmp_path, weak, "train", "data.use_weak_labels=false")
    for record in predicted_lines(samples, numbered(samples)):
        assert [each and each["candidates"][0] for each in record["predictions"]] == [
            "arn.river",
            None,
            "cor.river",
        ]


def test_database_that_lacks_a_mention_is_refused(tmp_path: Path) -> None:
    samples = samples_of(tmp_path, records(60), "train")
    with sqlite3.connect(samples.database) as connection:
        connection.execute("DELETE FROM mentions WHERE split = 'train' AND sample_id = 0")
    with pytest.raises(DataError, match="mentions of train"):
        list(predicted_lines(samples, numbered(samples)))


def test_class_nc_is_the_first_candidate_if_enabled(tmp_path: Path) -> None:
    samples = samples_of(tmp_path, records(60), "train", "data.no_candidate=true")
    found = (record["predictions"] for record in predicted_lines(samples, numbered(samples)))
    (first, *_) = (said[0] for said in found if said)
    assert first["candidates"][0] == first["qid"] == "NC"


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=40))
def test_written_probabilities_sum_to_one(weights: list[float]) -> None:
    names = {place: f"Q{place}" for place in range(len(weights))}
    shown = among(np.arange(len(weights)), np.array(weights), names)
    assert sum(shown["probabilities"]) == pytest.approx(1, abs=1e-5)
    # Weights that differ by less than rounding are equal, and the first of them counts.
    assert weights[int(shown["qid"][1:])] == pytest.approx(max(weights))
    assert shown["probability"] == max(shown["probabilities"])
