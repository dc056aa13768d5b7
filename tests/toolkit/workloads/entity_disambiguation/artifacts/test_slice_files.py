"""The files of slices: CSV with Bootleg's columns, and JSON with counts."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from tests.toolkit.workloads.entity_disambiguation.scorer import score
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir
from toolkit.workloads.entity_disambiguation.artifacts import write_slices
from toolkit.workloads.entity_disambiguation.files import DisambiguationFiles
from toolkit.workloads.entity_disambiguation.metrics.slice_score import SHARES, SliceScore

#: From Bootleg's tests: label -1 is not scored, -2 cannot be predicted.
GOLDS = np.array([0, -2, 1, -1, 0, 3])
PREDICTIONS = np.array([1, 2, 0, 1, 0, 3])


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "run")
    everything = np.ones(6, bool)
    some = np.isin(np.arange(6), (1, 4))
    scores = {"slice_1": score(GOLDS, PREDICTIONS, some), "final_loss": score(GOLDS, PREDICTIONS, everything)}
    write_slices(run, "validation", scores, dataset="dev", no_candidate=False)
    return run


def test_csv_has_the_columns_and_numbers_of_bootleg_sorted_by_slice(run: RunDir) -> None:
    with open(DisambiguationFiles(run).disambig_metrics("validation"), newline="") as stream:
        head, *rows = csv.reader(stream)
    assert ",".join(head) == (
        "task,dataset,split,slice,mentions,mentions_notNC,acc_boot,acc_boot_notNC,acc_pop,acc_pop_notNC"
    )
    assert [row[:4] for row in rows] == [
        ["NED", "dev", "validation", "final_loss"],
        ["NED", "dev", "validation", "slice_1"],
    ]
    numbers = [[float(cell) for cell in row[4:]] for row in rows]
    assert numbers == [[5, 4, 2 / 5, 2 / 4, 2 / 5, 2 / 4], [2, 1, 1 / 2, 1 / 1, 1 / 2, 1 / 1]]


def test_json_has_the_counts_in_the_given_order(run: RunDir) -> None:
    document = read_json(DisambiguationFiles(run).slices("validation"))
    assert [each["name"] for each in document["slices"]] == ["slice_1", "final_loss"]
    assert (document["split"], document["dataset"], document["no_candidate"]) == ("validation", "dev", False)
    assert document["slices"][0] == {
        "name": "slice_1",
        "mentions": 2,
        "mentions_not_nc": 1,
        "correct": 1,
        "correct_not_nc": 1,
        "popular": 1,
        "popular_not_nc": 1,
        "accuracy": 0.5,
        "accuracy_not_nc": 1.0,
        "popularity": 0.5,
        "popularity_not_nc": 1.0,
    }


def test_json_has_no_shares_of_no_mentions(tmp_path: Path) -> None:
    """A share of mentions with a gold among the candidates may be missing alone."""
    run = RunDir(tmp_path)
    outside = score(np.array([-2]), np.array([0]), np.ones(1, bool))
    write_slices(run, "test", {"final_loss": outside, "empty": SliceScore()}, dataset="dev")
    found = {each["name"]: each for each in read_json(DisambiguationFiles(run).slices("test"))["slices"]}
    assert [found["final_loss"][name] for name in SHARES] == [0.0, None, 0.0, None]
    assert [found["empty"][name] for name in SHARES] == [None] * 4


def test_the_scores_of_a_split_without_mentions_are_0_in_the_csv_as_in_bootleg(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    none = np.zeros(0, bool)
    scores = {"final_loss": score(GOLDS[:0], PREDICTIONS[:0], none)}
    write_slices(run, "test", scores, dataset="empty")
    assert (
        DisambiguationFiles(run).disambig_metrics("test").read_text().splitlines()[1]
        == "NED,empty,test,final_loss,0,0,0.0,0.0,0.0,0.0"
    )
