"""`stk predict` gives the predictions that a run of entity disambiguation wrote for its test set."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tiers import first_quick
from tests.toolkit.support.rescoring import ask
from tests.toolkit.workloads.entity_disambiguation.entity_files import (
    line,
    lines,
    tiny_cached,
    tiny_co_mention,
    tiny_entities,
    write_lines,
)
from tests.toolkit.workloads.moved_run import moved_run, stk
from toolkit.analysis.export import export_run
from toolkit.analysis.prediction.load import load_model
from toolkit.analysis.prediction.predict import predict_rows
from toolkit.analysis.prediction.predictor import UnfitRow
from toolkit.config import Experiment
from toolkit.errors import DataError
from toolkit.files import read_json, read_json_lines
from toolkit.run.run_dir import RunDir
from toolkit.workloads.entity_disambiguation.files import DisambiguationFiles
from toolkit.workloads.entity_disambiguation.inference.predictor import sentence_of


def separate(folder: Path, *overrides: str) -> Experiment:
    layers = ("model.share=false", "model.context_layers=1", "data.no_candidate=true")
    return tiny_entities(folder, *layers, *overrides)


#: By the kind of model.
MAKE = {
    "one encoder": tiny_entities,
    "vectors computed beforehand": tiny_cached,
    "all mentions of a sentence": tiny_co_mention,
    "an encoder of entities with more layers": separate,
}


@pytest.fixture(scope="module", params=first_quick(MAKE.values()), ids=list(MAKE))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunDir]:
    with moved_run(tmp_path_factory.mktemp("user"), request.param, "train.epochs=1") as run:
        yield run


def unlabelled() -> list[dict[str, Any]]:
    return [{key: record[key] for key in ("sentence", "aliases", "spans")} for record in lines("test")]


def check(run: RunDir, found: Iterable[dict[str, Any]]) -> None:
    expected = list(read_json_lines(DisambiguationFiles(run).dump("test")))
    said = [each["predictions"] for each in found]
    assert len(said) == len(expected)
    for mine, theirs in zip(said, (each["predictions"] for each in expected), strict=True):
        assert [each["candidates"] for each in mine] == [each["candidates"] for each in theirs]
        for one, other in zip(mine, theirs, strict=True):
            assert one["probabilities"] == pytest.approx(other["probabilities"], abs=2e-5)


@pytest.mark.parametrize("run", [tiny_entities], ids=[""], indirect=True)
def test_a_file_and_a_pipe_get_the_predictions_of_the_evaluation(run: RunDir) -> None:
    file = write_lines(Path("rows.jsonl"), unlabelled())
    stk("predict", run.path, file, "--output", "told.jsonl", "--batch-size", 2)
    check(run, read_json_lines(Path("told.jsonl")))
    check(run, map(json.loads, stk("predict", run.path, given=file.read_text()).splitlines()))


def test_each_kind_of_model_predicts_as_in_its_evaluation(run: RunDir) -> None:
    check(run, predict_rows(run, unlabelled(), batch_size=2))


@pytest.mark.parametrize("run", [tiny_entities], ids=[""], indirect=True)
def test_an_unknown_alias_has_no_prediction(run: RunDir) -> None:
    records = [line(1, [("gor", "river")]), line(2, []), line(3, [("gor", "town"), ("arn", "town")])]
    said = [each["predictions"] for each in predict_rows(run, records)]
    assert said[:2] == [[None], []]
    assert said[2][0] is None
    assert said[2][1]["qid"] in said[2][1]["candidates"]


@pytest.mark.parametrize(
    "row, said",
    [
        ({"sentence": "an arn"}, "aliases is missing, expected a list of texts"),
        ({"sentence": "an arn", "aliases": ["arn"]}, "spans and char_spans are missing"),
        ({"sentence": "an arn", "aliases": ["arn"], "spans": [[4, 5]]}, "lie outside the text"),
        ({"sentence": "a \ud800", "aliases": [], "spans": []}, r"found \ud800, which is not a character"),
        ([], "found a list, expected an object"),
    ],
)
def test_a_row_that_is_not_a_sentence_is_refused(row: Any, said: str) -> None:
    with pytest.raises(UnfitRow) as caught:
        sentence_of(row)
    assert said in str(caught.value)


def test_error_of_a_run_without_its_database_names_the_original_folder(run: RunDir) -> None:
    folder = DisambiguationFiles(run).entity_db
    folder.rename(folder.with_name("aside"))
    try:
        with pytest.raises(DataError, match=r"files.entity_db is not a folder"):
            load_model(run.path)
    finally:
        folder.with_name("aside").rename(folder)


@pytest.mark.parametrize("run", [tiny_cached], ids=[""], indirect=True)
@pytest.mark.slow
def test_an_exported_folder_predicts_and_scores_like_the_run(
    run: RunDir, tmp_path: Path, threads_restored: None
) -> None:
    slim = export_run(run, tmp_path / "slim")
    check(run, predict_rows(slim, unlabelled()))
    file = write_lines(tmp_path / "labelled.jsonl", list(lines("test")))
    assert ask(slim, file=str(file))["metrics"]["test"] == pytest.approx(
        read_json(run.result)["metrics"]["test"]
    )
    assert not Path("files").exists()
