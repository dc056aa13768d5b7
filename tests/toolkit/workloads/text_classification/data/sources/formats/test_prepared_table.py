"""The database of a prepared set as a table."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from toolkit.data.prepared.results import Result, record_result
from toolkit.errors import DataError
from toolkit.workload import silent
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.checks import table_violations
from toolkit.workloads.text_classification.data.prepared import Prepared, prepare


def texts_of(prepared: Prepared, split: str) -> list[tuple[str, str]]:
    samples = prepared.split(split)
    labels = [prepared.labels[label] for label in samples.labels]
    return list(zip(samples.texts(range(len(samples))), labels, strict=True))


def on_database(table: TextTable, **settings: object) -> TextTable:
    """The section with the database of its prepared set instead of its files."""
    files = dict.fromkeys(("train", "validation", "test"))
    return dataclasses.replace(table, path=str(prepare(table).database), **files, **settings)


@pytest.mark.parametrize("files", ["table", "three_files"])
def test_texts_of_a_prepared_set_keep_their_labels_and_splits(
    files: str, request: pytest.FixtureRequest
) -> None:
    data = request.getfixturevalue(files)
    # These settings have no effect.
    again = prepare(on_database(data, split_seed=7, splits={"train": 0.5, "validation": 0.5}))
    known = prepare(data)
    assert again.splits == known.splits
    assert again.labels == known.labels
    for split in known.splits:
        assert texts_of(again, split) == texts_of(known, split)


def test_other_settings_give_other_samples_of_the_same_texts(table: TextTable) -> None:
    again = prepare(on_database(table, max_tokens=2, fold="word"))
    known = prepare(table)
    assert max(again.split("train").lengths) == 2
    assert again.meta["texts"] == known.meta["texts"]


def test_scores_of_runs_do_not_change_the_fingerprint(table: TextTable) -> None:
    section = on_database(table)
    before = section.prepared_place(silent)
    prepare(section)
    facts = dict.fromkeys(("run", "finished", "name", "model", "task"), "a")
    result = Result(**facts, seed=0, step=1, metrics={"test": {"f1": 1.0}})
    assert record_result(Path(str(section.path)).parent, result) is None
    assert section.prepared_place(silent) == before
    assert not prepare(section).built


def test_a_prepared_set_as_a_scored_file_gives_all_its_texts(table: TextTable) -> None:
    known = prepare(table)
    scored = prepare(on_database(table), known=known.encoding)
    assert scored.splits == {"test": sum(known.splits.values())}


def test_a_set_that_was_only_scored_cannot_be_trained_on(table: TextTable) -> None:
    scored = prepare(on_database(table), known=prepare(table).encoding)
    section = TextTable(path=str(scored.database), prepared_dir=table.prepared_dir)
    (violation,) = table_violations(section)
    assert "splits test" in violation.problem
    with pytest.raises(DataError, match="splits test"):
        prepare(section)


def test_a_database_that_is_not_of_prepared_texts_is_refused_before_a_job(
    table: TextTable, tmp_path: Path
) -> None:
    stray = tmp_path / "stray" / "x.sqlite"
    stray.parent.mkdir()
    stray.write_bytes(b"")
    (violation,) = table_violations(TextTable(path=str(stray)))
    assert violation.key == ("data", "path")
    (missing,) = table_violations(TextTable(path=str(tmp_path / "none.sqlite")))
    assert missing.key == ("data", "path")
    damaged = Path(str(on_database(table).path))
    damaged.write_bytes(b"no database" * 1000)
    with pytest.raises(DataError, match="damaged"):
        prepare(TextTable(path=str(damaged), prepared_dir=str(tmp_path / "other")))


def test_a_set_with_split_fragments_is_refused(table: TextTable) -> None:
    section = on_database(dataclasses.replace(table, fold="word", max_tokens=3, split_unit="fragment"))
    with pytest.raises(DataError, match="split_unit"):
        prepare(section)


def test_an_empty_split_of_a_prepared_set_is_left_out(table: TextTable) -> None:
    known = dataclasses.replace(table, splits={"train": 0.8, "validation": 0.2, "test": 0})
    assert prepare(on_database(known)).splits == {"train": 48, "validation": 12}
