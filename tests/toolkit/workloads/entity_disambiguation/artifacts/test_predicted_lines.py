"""Lines of a split with the predictions of a model beside their aliases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.toolkit.workloads.entity_disambiguation.entity_files import line, tiny_entities, write_lines
from toolkit.data.prepared.manifest import PREPARE_AGAIN
from toolkit.errors import DataError
from toolkit.workloads.entity_disambiguation.artifacts.dump import predicted_lines
from toolkit.workloads.entity_disambiguation.data.samples.prepared import prepare
from toolkit.workloads.entity_disambiguation.data.samples.samples import MentionSamples

NAMES = ("arn", "bel", "cor", "dun", "esk", "fal")


def samples_of(
    folder: Path, records: Sequence[dict[str, Any]], split: str, *overrides: str
) -> MentionSamples:
    """The samples of a split of one file, cut by its sentences."""
    tiny_entities(folder)
    file = write_lines(folder / "all.jsonl", records)
    files = (f"data.path={file}", "data.train=", "data.validation=", "data.test=", "data.split_by=sentence")
    return prepare(tiny_entities(folder, *files, *overrides).data).split(split)


def numbered(samples: MentionSamples) -> np.ndarray[Any, Any]:
    """Probabilities that tell samples apart: the first candidate's falls from one to the next."""
    shares = np.zeros((len(samples), samples.tables.candidates.shape[1]), dtype=np.float32)
    shares[:, 0] = 1 - 0.1 / (1 + np.arange(len(samples)))
    shares[:, 1] = 1 - shares[:, 0]
    return shares


def records(count: int) -> list[dict[str, Any]]:
    """Sentences of no mention up to three."""
    return [
        line(number, [(NAMES[(number + place) % 6], "river") for place in range(number % 4)], parent=number)
        for number in range(count)
    ]


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_lines_of_a_split_keep_their_order_and_each_mention_has_its_own_prediction(
    tmp_path: Path, split: str
) -> None:
    everything = records(300)
    samples = samples_of(tmp_path, everything, split)
    found = list(predicted_lines(samples, numbered(samples)))
    numbers = [record["sent_idx_unq"] for record, _ in found]
    assert numbers == sorted(numbers)
    assert [record for record, _ in found] == [everything[number] for number in numbers]
    assert [len(said) for _, said in found] == [number % 4 for number in numbers]
    said = [each for _, parallel in found for each in parallel if each is not None]
    assert len(said) == len(samples) == sum(number % 4 for number in numbers)
    expected = (1 - 0.1 / (1 + np.arange(len(samples)))).tolist()
    assert [each["probability"] for each in said] == pytest.approx(expected, abs=1e-7)
    aliases = [alias for record, _ in found for alias in record["aliases"]]
    assert [each["qid"] for each in said] == [f"{alias}.river" for alias in aliases]


def test_a_mention_that_training_left_out_has_no_prediction(tmp_path: Path) -> None:
    weak = [
        line(number, [("arn", "river"), ("bel", "town"), ("cor", "ship")], gold=[True, False, True])
        for number in range(30)
    ]
    samples = samples_of(tmp_path, weak, "train", "data.use_weak_labels=false")
    for _, said in predicted_lines(samples, numbered(samples)):
        assert [None if each is None else each["candidates"][0] for each in said] == [
            "arn.river",
            None,
            "cor.river",
        ]


def test_none_of_the_candidates_is_one_of_them_where_it_can_be_chosen(tmp_path: Path) -> None:
    samples = samples_of(tmp_path, records(60), "train", "data.no_candidate=true")
    (first, *_) = (said[0] for _, said in predicted_lines(samples, numbered(samples)) if said)
    assert first is not None
    assert first["candidates"][0] == first["qid"] == "NC"


def test_probabilities_sum_to_one_though_those_of_32_bits_do_not(tmp_path: Path) -> None:
    samples = samples_of(tmp_path, records(60), "train")
    shares = numbered(samples) * np.float32(1.0001)
    for _, said in predicted_lines(samples, shares):
        for each in said:
            assert each is not None
            assert sum(each["probabilities"]) == pytest.approx(1, abs=1e-6)


def test_a_damaged_database_is_named(tmp_path: Path) -> None:
    samples = samples_of(tmp_path, records(60), "train")
    samples.database.chmod(0o644)
    samples.database.write_bytes(b"no database")
    with pytest.raises(DataError, match=PREPARE_AGAIN):
        list(predicted_lines(samples, numbered(samples)))
