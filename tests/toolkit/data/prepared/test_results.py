"""Finished runs record their scores in the prepared set."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from stk_toy.texts.prepared import Texts
from stk_toy.texts.sections import TextsData

from tests.support.patience import PATIENCE_S
from tests.toolkit.support.tiny import query
from toolkit.data.prepared.results import Result, record_result
from toolkit.data.provenance import origins
from toolkit.errors import DataError
from toolkit.workload import silent

REPOSITORY = Path(__file__).parents[4]
RESULT = Result(
    run="films-1a2b3c",
    finished="2026-11-21T20:00:00+00:00",
    name="films",
    model="convolutions",
    task="toy_texts",
    seed=3,
    step=120,
    metrics={"validation": {"loss": 0.5, "accuracy": 0.75}, "test": {"loss": 0.25, "accuracy": 0.875}},
)


@pytest.fixture
def prepared(tmp_path: Path) -> Texts:
    rows = "".join(f"a film no{number}\t{('good', 'bad')[number % 2]}\n" for number in range(200))
    (tmp_path / "films.tsv").write_text(f"text\tlabel\n{rows}")
    data = TextsData(path=str(tmp_path / "films.tsv"), prepared_dir=str(tmp_path / "prepared"))
    return data.prepare(silent)


def test_a_result_is_a_row_for_each_split_and_each_score(prepared: Texts) -> None:
    assert record_result(prepared.path, RESULT) is None
    assert query(prepared, "SELECT * FROM results ORDER BY split") == [
        (RESULT.run, split, RESULT.finished, "films", "convolutions", "toy_texts", 3, 120, json.dumps(scores))
        for split, scores in sorted(RESULT.metrics.items())
    ]
    assert query(prepared, "SELECT split, metric, value FROM scores ORDER BY split, metric") == [
        ("test", "accuracy", 0.875), ("test", "loss", 0.25),
        ("validation", "accuracy", 0.75), ("validation", "loss", 0.5),
    ]  # fmt: skip


def test_recording_a_run_again_replaces_only_its_own_result(prepared: Texts) -> None:
    other = dataclasses.replace(RESULT, run="films-4d5e6f")
    for result in (RESULT, other, dataclasses.replace(RESULT, metrics={"test": {"loss": 1.0}})):
        assert record_result(prepared.path, result) is None
    losses = "SELECT run, split, metric, value FROM scores WHERE metric = 'loss' ORDER BY run, split"
    assert query(prepared, losses) == [
        ("films-1a2b3c", "test", "loss", 1.0),
        ("films-4d5e6f", "test", "loss", 0.25),
        ("films-4d5e6f", "validation", "loss", 0.5),
    ]  # fmt: skip
    assert query(prepared, "SELECT count(*) FROM results") == [(3,)]


def test_a_nan_score_is_stored_as_null(prepared: Texts) -> None:
    broken = dataclasses.replace(RESULT, metrics={"test": {"loss": float("nan")}})
    assert record_result(prepared.path, broken) is None
    assert query(prepared, "SELECT value FROM scores") == [(None,)]
    assert query(prepared, "SELECT metrics FROM results") == [('{"loss": null}',)]


def test_results_survive_another_preparation(prepared: Texts) -> None:
    record_result(prepared.path, RESULT)
    data = TextsData(path=str(prepared.path.parents[1] / "films.tsv"), prepared_dir=str(prepared.path.parent))
    again = data.prepare(silent)
    assert (again.built, again.path) == (False, prepared.path)
    assert query(again, "SELECT count(*) FROM results") == [(2,)]


def test_a_database_with_many_results_still_verifies(prepared: Texts) -> None:
    for number in range(200):
        record_result(prepared.path, dataclasses.replace(RESULT, run=f"run {number}"))
    size = (prepared.path / "samples.sqlite").stat().st_size
    assert size > prepared.meta["files"]["samples.sqlite"]["size"]
    Texts.open(prepared.path).verify()
    (first,) = origins(prepared.split("train"), np.arange(1))
    assert first.text.startswith("a film no")


def test_damage_to_a_database_with_results_is_found(prepared: Texts) -> None:
    record_result(prepared.path, RESULT)
    database = prepared.path / "samples.sqlite"
    content = bytearray(database.read_bytes())
    content[4096:8192] = b"\x55" * 4096
    database.write_bytes(content)
    with pytest.raises(DataError, match=r"samples\.sqlite is damaged"):
        Texts.open(prepared.path).verify()


def test_damage_to_a_database_without_results_is_found_by_its_checksum(prepared: Texts) -> None:
    database = prepared.path / "samples.sqlite"
    content = database.read_bytes()
    assert b"a film no17" in content
    database.write_bytes(content.replace(b"a film no17", b"a film no71"))
    with pytest.raises(DataError, match=r"samples\.sqlite is damaged: its checksum differs"):
        prepared.verify()


@pytest.fixture
def read_only(prepared: Texts) -> Iterator[Texts]:
    files = [prepared.path, *prepared.path.iterdir()]
    for file in files:
        file.chmod(0o555 if file.is_dir() else 0o444)
    yield prepared
    for file in files:
        file.chmod(0o755 if file.is_dir() else 0o644)


def test_recording_into_a_read_only_set_returns_a_note(
    read_only: Texts, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("ordinary_user")
    note = record_result(read_only.path, RESULT)
    assert note.startswith(f"results are not recorded in {read_only.path}/samples.sqlite: ")


@pytest.mark.parametrize("content", [None, b"no database" * 1000])
def test_recording_into_a_missing_or_damaged_set_returns_a_note(
    prepared: Texts, content: bytes | None
) -> None:
    database = prepared.path / "samples.sqlite"
    if content is None:
        database.unlink()
    else:
        database.write_bytes(content)
    note = record_result(prepared.path, RESULT)
    assert note.startswith(f"results are not recorded in {database}: ")


@pytest.mark.slow
def test_results_of_concurrent_runs_are_all_recorded(prepared: Texts) -> None:
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from toolkit.data.prepared.results import Result, record_result\n"
        "facts = dict(finished='', name='', model='', task='', seed=0, step=1)\n"
        "for number in range(20):\n"
        "    note = record_result(Path(sys.argv[1]), Result(run=f'{sys.argv[2]} {number}', "
        "metrics={'test': {'loss': 1.0}}, **facts))\n"
        "    assert note is None, note\n"
    )
    command = [sys.executable, "-c", program, str(prepared.path)]
    processes = [subprocess.Popen([*command, name], cwd=REPOSITORY) for name in "abcd"]
    assert [process.wait(timeout=PATIENCE_S) for process in processes] == [0] * 4
    assert query(prepared, "SELECT count(*), count(DISTINCT run) FROM results") == [(80, 80)]
    Texts.open(prepared.path).verify()
