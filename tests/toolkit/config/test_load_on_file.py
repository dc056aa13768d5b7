"""A run's stored experiment with another data file in place of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.support.tiny import tiny
from toolkit.config import Experiment, load_on_file, to_yaml
from toolkit.errors import ConfigError


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "run" / "config.yaml"
    path.parent.mkdir()
    path.write_text(to_yaml(tiny(tmp_path)))
    return path


def on(stored: Path, *overrides: str) -> Experiment:
    return load_on_file(stored, Path("/data/other.csv"), overrides)


def faults(stored: Path, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        on(stored, *overrides)
    return str(caught.value)


def test_the_file_replaces_all_data_files_and_nothing_else(stored: Path, tmp_path: Path) -> None:
    found, own = on(stored), tiny(tmp_path)
    data = found.data
    assert (data.path, data.train, data.validation, data.test) == ("/data/other.csv", None, None, None)
    assert (found.model, found.train, found.task, found.evaluation) == (
        own.model, own.train, own.task, own.evaluation,
    )  # fmt: skip


def test_the_columns_and_delimiter_of_the_file_can_be_overridden(stored: Path) -> None:
    data = on(stored, "data.text_column=body", "data.columns=[body, label]", "data.delimiter=';'").data
    assert (data.text_column, data.columns, data.delimiter) == ("body", ("body", "label"), ";")


def test_overriding_a_fixed_key_is_refused_with_the_keys_that_may_be_set(stored: Path) -> None:
    told = faults(stored, "data.max_tokens=5", "model.filters=2")
    assert "command line: data.max_tokens: is fixed by the run" in told
    assert "command line: model.filters: is fixed by the run" in told
    assert "data.text_column" in told


def test_a_misspelt_key_gets_a_suggestion(stored: Path) -> None:
    assert "did you mean data.text_column?" in faults(stored, "data.text_colum=body")


def test_a_value_outside_the_choices_is_a_fault(stored: Path) -> None:
    assert "data.unknown_labels: found 'keep' (text), expected" in faults(stored, "data.unknown_labels=keep")


def test_references_in_a_stored_experiment_are_not_resolved(stored: Path) -> None:
    stored.write_text(stored.read_text().replace("text_column: text", "text_column: ${oc.env:HOME}"))
    assert on(stored).data.text_column == "${oc.env:HOME}"
