"""`stk predict` gives the predictions that a run of text classification wrote for its test set."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from tests.tiers import first_quick
from tests.toolkit.support.tiny import rows
from tests.toolkit.workloads.moved_run import moved_run, stk
from tests.toolkit.workloads.text_classification.tiny_texts import tiny_bert, tiny_docnn
from toolkit.analysis.prediction.load import load_model
from toolkit.analysis.prediction.predict import predict_rows
from toolkit.errors import DataError
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir

#: By the kind of model.
MAKE = {"a DocNN on words": tiny_docnn, "a BERT on folded texts": tiny_bert}
TEXTS = [text for text, _ in rows("test")]
#: For what does not depend on the model.
DOCNN_ONLY = pytest.mark.parametrize("run", [tiny_docnn], ids=[""], indirect=True)
BERT_ONLY = pytest.mark.parametrize("run", [tiny_bert], ids=[""], indirect=True)


@pytest.fixture(scope="module", params=first_quick(MAKE.values()), ids=list(MAKE))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunDir]:
    with moved_run(tmp_path_factory.mktemp("user"), request.param, "train.epochs=3") as run:
        yield run


def told(run: RunDir) -> list[dict[str, str]]:
    """The run's own predictions for whole texts of its test set."""
    kind = "testset_text" if "fold: word" in run.config.read_text() else "testset"
    (path,) = run.artifacts.glob(f"*_{kind}_predictions.csv")
    with path.open(newline="") as stream:
        return [*csv.DictReader(stream)]


def check(run: RunDir, found: list[dict[str, str]]) -> None:
    expected = told(run)
    assert [each["label"] for each in found] == [each["predicted_class"] for each in expected]
    for label in ("good", "bad"):
        probabilities = [float(each[f"probabilities.{label}"]) for each in found]
        assert probabilities == pytest.approx([float(each[f"P({label})"]) for each in expected], abs=2e-6)


def flat(lines: str) -> list[dict[str, str]]:
    return flattened(json.loads(line) for line in lines.splitlines())


def flattened(found: Iterable[dict[str, Any]]) -> list[dict[str, str]]:
    return [
        {"label": each["label"], **{f"probabilities.{name}": p for name, p in each["probabilities"].items()}}
        for each in found
    ]


@DOCNN_ONLY
def test_plain_lines_json_lines_and_tables_get_the_predictions_of_the_evaluation(run: RunDir) -> None:
    assert [each["text"] for each in told(run)] == TEXTS
    check(run, flat(stk("predict", run.path, "--input-format", "lines", given="\n".join(TEXTS))))
    given = "".join(json.dumps({"id": 1, "text": text}) + "\n" for text in TEXTS)
    check(run, flat(stk("predict", run.path, given=given)))
    Path("rows.tsv").write_text("text\tnote\tnote\n" + "".join(f"{text}\ta\tb\n" for text in TEXTS))
    check(run, [*csv.DictReader(stk("predict", run.path, "rows.tsv", "--batch-size", 2).splitlines())])


@DOCNN_ONLY
def test_a_row_without_the_column_of_the_run_is_reported(run: RunDir) -> None:
    given = '"fine"\n{"body": "a film"}\n'
    found = stk("predict", run.path, "--output", "none.csv", given=given, code=2)
    said = "standard input:2: found no 'text' (data.text_column of the run), only body: rename"
    assert said in found
    assert not os.path.exists("none.csv")


@DOCNN_ONLY
@pytest.mark.parametrize(
    "row, said",
    [
        (["1"], "samples:2: found a list, expected a text"),
        (None, "samples:2: found null, expected a text"),
        (True, "samples:2: found true, expected a text"),
        (1, "samples:2: found 1, expected a text"),
        ("a\ud800", r"samples:2: found \ud800, which is not a character of text"),
    ],
)
def test_a_row_that_is_not_a_text_is_reported(run: RunDir, row: Any, said: str) -> None:
    with pytest.raises(DataError) as refused:
        next(predict_rows(run, ["fine", row]))
    assert said in str(refused.value)


@DOCNN_ONLY
def test_table_with_another_delimiter_is_refused_with_that_of_the_run(run: RunDir) -> None:
    Path("semicolons.csv").write_text("text;label\nfine;good\n")
    assert "lines are cut at commas" in stk("predict", run.path, "semicolons.csv", code=2)


@DOCNN_ONLY
def test_predictions_of_a_table_without_rows_have_a_header(run: RunDir) -> None:
    Path("none.csv").write_text("text,label\n")
    found = stk("predict", run.path, "none.csv")
    assert [*csv.reader(found.splitlines())] == [["label", "probabilities.bad", "probabilities.good"]]


def test_the_model_opens_without_other_files(run: RunDir) -> None:
    model = load_model(run.path)
    assert not model.training
    with torch.no_grad():
        assert model(torch.tensor([[2, 3], [2, 0]])).shape == (2, 2)


@DOCNN_ONLY
def test_a_run_without_its_encoding_needs_its_training_data(run: RunDir) -> None:
    kept = run.artifacts / "encoding.json"
    text = kept.read_text()
    kept.unlink()
    try:
        assert "no such file" in stk("predict", run.path, given='"fine"\n', code=2)
    finally:
        kept.write_text(text)


@contextmanager
def read_as(run: RunDir, **keys: str) -> Iterator[None]:
    """The run with other keys of its data, as if its files had been like that."""
    text = run.config.read_text()
    experiment = yaml.safe_load(text)
    experiment["data"] |= keys
    run.config.write_text(yaml.safe_dump(experiment))
    yield
    run.config.write_text(text)


@DOCNN_ONLY
def test_json_from_a_pipe_is_utf_8_whatever_the_files_of_the_run_are(run: RunDir) -> None:
    """The second byte of this letter is no character of that encoding."""
    with read_as(run, encoding="cp1252"):
        assert len(flat(stk("predict", run.path, given='"Í"\n'))) == 1


@DOCNN_ONLY
def test_a_text_file_is_not_taken_for_lines_where_the_run_cuts_its_own_at_a_delimiter(run: RunDir) -> None:
    Path("rows.txt").write_text("text;label\nfine film;good\n")
    with read_as(run, delimiter=";"):
        assert "--input-format lines or --input-format csv" in stk("predict", run.path, "rows.txt", code=2)
        assert len(flat(stk("predict", run.path, "rows.txt", "--input-format", "lines"))) == 2
        table = stk("predict", run.path, "rows.txt", "--input-format", "csv")
        assert len([*csv.DictReader(table.splitlines())]) == 1


@BERT_ONLY
@pytest.mark.slow
def test_folded_texts_are_predicted_whole_in_small_batches(run: RunDir) -> None:
    assert [each["text"] for each in told(run)] == TEXTS
    check(run, flattened(predict_rows(run, TEXTS, batch_size=2)))


@BERT_ONLY
@pytest.mark.slow
def test_an_exported_folder_predicts_and_scores_like_the_run(run: RunDir, tmp_path: Path) -> None:
    stk("export", run.path, tmp_path / "slim")
    check(run, flat(stk("predict", tmp_path / "slim", "--input-format", "lines", given="\n".join(TEXTS))))
    assert not [*(tmp_path / "slim" / "artifacts").glob("*predictions*")]
    file = tmp_path / "labelled.tsv"
    file.write_text("".join("\t".join(row) + "\n" for row in [("text", "label"), *rows("test")]))
    found = json.loads(stk("evaluate", tmp_path / "slim", "--data", file, "--json"))
    assert found["metrics"]["test"] == pytest.approx(read_json(run.result)["metrics"]["test"])
    assert not Path("files").exists()
