from __future__ import annotations

import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toolkit.workloads.text_classification.report.classified_runs import write_predictions
from toolkit.errors import DataError
from toolkit.report import formats
from toolkit.run.run_dir import RunDir
from toolkit.workloads.text_classification.files import ClassificationFiles
from toolkit.workloads.text_classification.report.mistakes import worst_mistakes

LABELS = ("neg", "pos")


def test_at_most_limit_mistakes_are_returned(new_run: RunDir) -> None:
    write_predictions(new_run, [("neg", "pos", [-0.01 * n, -3.0], f"text {n}") for n in range(1, 50)])
    found = worst_mistakes(new_run, "test", LABELS, limit=3)
    assert [mistake.text for mistake in found] == ["text 1", "text 2", "text 3"]


def test_confidence_is_the_highest_score_if_labels_are_unknown(new_run: RunDir) -> None:
    write_predictions(new_run, [("neg", "pos", [math.log(0.8), math.log(0.2)], "text")])
    (mistake,) = worst_mistakes(new_run, "test", ())
    assert mistake.confidence == pytest.approx(0.8)
    assert mistake.target_probability is None


@pytest.mark.parametrize("score", [0.5, [], "n/a"])
def test_scores_of_another_type_are_reported(new_run: RunDir, score: object) -> None:
    write_predictions(new_run, [("neg", "pos", score, "text")])
    with pytest.raises(DataError, match="not a table of predictions"):
        worst_mistakes(new_run, "test", LABELS)


def test_a_file_that_is_not_a_table_of_predictions_is_reported(new_run: RunDir) -> None:
    write_predictions(new_run, [])
    ClassificationFiles(new_run).predictions("test").write_text("text\tlabel\nfine\tneg\n")
    with pytest.raises(DataError, match=r"test_predictions\.tsv.*expected tab-separated columns"):
        worst_mistakes(new_run, "test", LABELS)


def test_a_text_longer_than_the_csv_modules_limit_is_read(new_run: RunDir) -> None:
    write_predictions(new_run, [("neg", "pos", [-0.1, -2.4], "word " * 100_000)])
    (mistake,) = worst_mistakes(new_run, "test", LABELS)
    assert len(mistake.text) == 500_000


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1, max_size=4))
def test_any_text_is_read_back_cleaned_and_in_its_row(texts: list[str]) -> None:
    """Quotes, tabs, line ends, bare carriage returns and NUL are all legal in a user's text."""
    with tempfile.TemporaryDirectory() as folder:
        run = RunDir(Path(folder))
        write_predictions(run, [("neg", "pos", [-0.1, -2.4], text) for text in texts])
        found = worst_mistakes(run, "test", LABELS)
    in_order = sorted(found, key=lambda mistake: int(mistake.row_index))
    assert [mistake.text for mistake in in_order] == [formats.clean(text) for text in texts]
