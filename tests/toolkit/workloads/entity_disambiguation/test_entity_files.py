"""The files of entity disambiguation are checked before anything is started."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.toolkit.workloads.entity_disambiguation.entity_files import tiny_entities
from toolkit.errors import DataError
from toolkit.precheck.check_inputs import check_inputs


def test_missing_sentences_and_a_missing_database_are_reported_together(tmp_path: Path) -> None:
    experiment = tiny_entities(tmp_path)
    Path(experiment.data.train).unlink()
    shutil.rmtree(experiment.data.entity_db)
    with pytest.raises(DataError) as caught:
        check_inputs(experiment)
    told = str(caught.value)
    assert all(key in told for key in ("data.train", experiment.data.train, "data.entity_db"))


@pytest.mark.parametrize("content", ["", "\n\n", "[]\n", "{}\n", "not JSON\n"])
def test_a_file_that_does_not_have_sentences_is_reported(tmp_path: Path, content: str) -> None:
    experiment = tiny_entities(tmp_path)
    Path(experiment.data.validation).write_text(content)
    with pytest.raises(DataError, match=r"data\.validation: .*"):
        check_inputs(experiment)


@pytest.mark.parametrize(
    "second, said",
    [
        ("not JSON", r"train\.jsonl:2: not JSON"),
        ('{"sent_idx_unq": 1000}', r"train\.jsonl:2: sentence is missing"),
        (None, r"train\.jsonl:2: sent_idx_unq \d+ is also that of line 1"),
    ],
)
def test_a_fault_behind_the_first_line_is_reported(tmp_path: Path, second: str | None, said: str) -> None:
    experiment = tiny_entities(tmp_path)
    first, *_ = Path(experiment.data.train).read_text().splitlines()
    Path(experiment.data.train).write_text(f"{first}\n{second or first}\n")
    with pytest.raises(DataError, match=said):
        check_inputs(experiment)


def test_a_folder_without_a_database_is_reported(tmp_path: Path) -> None:
    experiment = tiny_entities(tmp_path, f"data.entity_db={tmp_path}")
    with pytest.raises(DataError, match=r"data\.entity_db: .* is not an entity database"):
        check_inputs(experiment)


def test_a_system_of_types_that_the_database_does_not_have_is_reported(tmp_path: Path) -> None:
    check_inputs(tiny_entities(tmp_path, "data.type_systems=[kinds]"))
    with pytest.raises(DataError, match=r"data\.type_systems: found 'kindz', but .* are of kinds"):
        check_inputs(tiny_entities(tmp_path, "data.type_systems=[kindz]"))


@pytest.mark.parametrize("condition", ["candidats > 2", "drop table mentions", ""])
def test_a_condition_that_cannot_be_evaluated_is_reported(tmp_path: Path, condition: str) -> None:
    with pytest.raises(DataError, match=r"data\.slices\.crowded: .* cannot be evaluated"):
        check_inputs(tiny_entities(tmp_path, f"data.slices={{crowded: '{condition}'}}"))


def test_a_condition_of_a_slice_that_is_not_scored_is_only_a_warning(tmp_path: Path) -> None:
    experiment = tiny_entities(tmp_path, "data.slices={crowded: candidates > 2, wide: candidats > 2}")
    check_inputs(experiment)
    (warning,) = experiment.data.warnings()
    assert warning.key == ("data", "slices", "wide")
