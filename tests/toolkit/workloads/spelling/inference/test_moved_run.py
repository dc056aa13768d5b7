"""A run that was moved without its data can still score and predict texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tiers import first_quick
from tests.toolkit.support.tiny import SIZES
from tests.toolkit.workloads.spelling.spelling_files import texts, write_texts
from toolkit.analysis.export import export_run
from toolkit.analysis.prediction.predict import predict_rows
from toolkit.analysis.reevaluate import Request, rescore
from toolkit.errors import DataError
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.workload import silent
from toolkit.workloads.spelling.inference.correcting import open_corrector
from toolkit.workloads.spelling.inference.detecting import open_detector


def without_its_origin(run: RunDir, folder: Path) -> RunDir:
    """Return an export of a run; its data, tokenizers and dictionary are not there."""
    copy = export_run(run, folder / "moved")
    written = copy.config.read_text(encoding="utf-8")
    origin = run.path.parents[1]
    assert str(origin) in written
    copy.config.write_text(written.replace(str(origin), str(folder / "gone")), encoding="utf-8")
    return copy


@pytest.mark.parametrize(
    "name", first_quick(["of_words", "of_corrections", "of_texts", "of_word_corrections", "of_plus"], 2)
)
def test_moved_run_scores_a_file_like_the_same_texts_in_the_test_set(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    run = request.getfixturevalue(name)
    moved = without_its_origin(run, tmp_path)
    file = write_texts(tmp_path / "test.txt", texts(SIZES["test"], first=1000))
    found = rescore(moved, World.single(), Request(file=str(file)), silent)
    assert found["metrics"]["test"] == pytest.approx(read_json(run.result)["metrics"]["test"])
    assert not (tmp_path / "gone").exists()


TEXTS = ["the stoen river", "", "garden letter windwo " * 60]


@pytest.mark.parametrize("name", first_quick(["of_words", "of_texts", "of_plus_detection", "of_plus"]))
def test_predictions_of_a_moved_run_have_the_labels_of_detect(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    run = request.getfixturevalue(name)
    found = [*predict_rows(without_its_origin(run, tmp_path), TEXTS)]
    labels = [each["labels"] if "labels" in each else [each["label"]] for each in found]
    assert labels == open_detector(run, "cpu").detect(TEXTS)


@pytest.mark.parametrize(
    "name", first_quick(["of_corrections", "of_repairs", "of_plus_detection", "of_plus"])
)
def test_predictions_of_a_moved_run_have_the_text_of_correct(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    run = request.getfixturevalue(name)
    found = predict_rows(without_its_origin(run, tmp_path), [{"text": text} for text in TEXTS])
    assert [each["text"] for each in found] == open_corrector(run, "cpu").correct(TEXTS)


@pytest.mark.parametrize("row", [1, None, ["a text"], {"txt": "a text"}, "\ud800", {"text": "\0"}])
def test_a_row_without_a_text_is_refused(row: Any, of_words: RunDir) -> None:
    with pytest.raises(DataError, match="samples:1: found"):
        next(predict_rows(of_words, [row]))
