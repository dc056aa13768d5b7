"""Finished runs leave their scores beside the data."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.toolkit.data.films import query
from toolkit.config.kinds import TextTable
from toolkit.data.prepared import Prepared, prepare
from toolkit.data.results import Result, record_result
from toolkit.errors import DataError

REPOSITORY = Path(__file__).parents[3]
RESULT = Result(
    run="films-1a2b3c",
    finished="2026-11-21T20:00:00+00:00",
    name="films",
    model="docnn",
    task="text_classification",
    seed=3,
    step=120,
    metrics={"validation": {"loss": 0.5, "accuracy": 0.75}, "test": {"loss": 0.25, "accuracy": 0.875}},
)


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    rows = "".join(f"a film no{number}\t{('good', 'bad')[number % 2]}\n" for number in range(200))
    (tmp_path / "films.tsv").write_text(f"text\tlabel\n{rows}")
    return prepare(TextTable(path=str(tmp_path / "films.tsv"), prepared_dir=str(tmp_path / "prepared")))


def test_a_result_is_a_row_for_each_split_and_each_score(prepared: Prepared) -> None:
    assert record_result(prepared.path, RESULT) is None
    assert query(prepared, "SELECT * FROM results ORDER BY split") == [
        (
            RESULT.run,
            split,
            RESULT.finished,
            "films",
            "docnn",
            "text_classification",
            3,
            120,
            json.dumps(scores),
        )
        for split, scores in sorted(RESULT.metrics.items())
    ]
    assert query(prepared, "SELECT split, metric, value FROM scores ORDER BY split, metric") == [
        ("test", "accuracy", 0.875), ("test", "loss", 0.25),
        ("validation", "accuracy", 0.75), ("validation", "loss", 0.5),
    ]  # fmt: skip


def test_the_same_run_again_replaces_its_result_and_no_other(prepared: Prepared) -> None:
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


def test_a_score_that_is_no_number_is_kept_as_null(prepared: Prepared) -> None:
    broken = dataclasses.replace(RESULT, metrics={"test": {"loss": float("nan")}})
    assert record_result(prepared.path, broken) is None
    assert query(prepared, "SELECT value FROM scores") == [(None,)]
    assert query(prepared, "SELECT metrics FROM results") == [('{"loss": null}',)]


def test_results_of_a_study_outlast_another_preparation(prepared: Prepared) -> None:
    record_result(prepared.path, RESULT)
    data = TextTable(path=str(prepared.path.parents[1] / "films.tsv"), prepared_dir=str(prepared.path.parent))
    again = prepare(data)
    assert (again.built, again.encoded, again.path) == (False, 0, prepared.path)
    assert query(again, "SELECT count(*) FROM results") == [(2,)]


def test_many_results_make_the_database_larger_not_damaged(prepared: Prepared) -> None:
    for number in range(200):
        record_result(prepared.path, dataclasses.replace(RESULT, run=f"run {number}"))
    size = (prepared.path / "samples.sqlite").stat().st_size
    assert size > prepared.meta["files"]["samples.sqlite"]["size"]
    Prepared.open(prepared.path).verify()
    assert prepared.split("train").texts([0])[0].startswith("a film no")


def test_damage_to_a_database_with_results_is_found(prepared: Prepared) -> None:
    record_result(prepared.path, RESULT)
    database = prepared.path / "samples.sqlite"
    content = bytearray(database.read_bytes())
    content[4096:8192] = b"\x55" * 4096
    database.write_bytes(content)
    with pytest.raises(DataError, match=r"samples\.sqlite is damaged"):
        Prepared.open(prepared.path).verify()


def test_damage_to_a_database_without_results_is_found_by_its_checksum(prepared: Prepared) -> None:
    database = prepared.path / "samples.sqlite"
    content = database.read_bytes()
    assert b"a film no17" in content
    database.write_bytes(content.replace(b"a film no17", b"a film no71"))
    with pytest.raises(DataError, match=r"samples\.sqlite is damaged: its checksum differs"):
        prepared.verify()


@pytest.fixture
def read_only(prepared: Prepared) -> Iterator[Prepared]:
    files = [prepared.path, *prepared.path.iterdir()]
    for file in files:
        file.chmod(0o555 if file.is_dir() else 0o444)
    yield prepared
    for file in files:
        file.chmod(0o755 if file.is_dir() else 0o644)


def test_a_read_only_set_gets_no_result_and_says_so(
    read_only: Prepared, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("ordinary_user")
    note = record_result(read_only.path, RESULT)
    assert note is not None
    assert note.startswith(f"results are not recorded in {read_only.path}/samples.sqlite: ")


@pytest.mark.parametrize("content", [None, b"no database" * 1000])
def test_a_set_that_is_gone_or_damaged_fails_no_run(prepared: Prepared, content: bytes | None) -> None:
    database = prepared.path / "samples.sqlite"
    if content is None:
        database.unlink()
    else:
        database.write_bytes(content)
    note = record_result(prepared.path, RESULT)
    assert note is not None
    assert note.startswith(f"results are not recorded in {database}: ")


def test_runs_that_finish_together_all_leave_their_results(prepared: Prepared) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom toolkit.data.results import Result, record_result\n"
        "facts = dict(finished='', name='', model='', task='', seed=0, step=1)\n"
        "for number in range(20):\n"
        "    note = record_result(Path(sys.argv[1]), Result(run=f'{sys.argv[2]} {number}', "
        "metrics={'test': {'loss': 1.0}}, **facts))\n"
        "    assert note is None, note\n"
    )
    command = [sys.executable, "-c", program, str(prepared.path)]
    processes = [subprocess.Popen([*command, name], cwd=REPOSITORY) for name in "abcd"]
    assert [process.wait(timeout=120) for process in processes] == [0] * 4
    assert query(prepared, "SELECT count(*), count(DISTINCT run) FROM results") == [(80, 80)]
    Prepared.open(prepared.path).verify()


def test_recording_needs_no_numpy() -> None:
    program = "import sys, toolkit.data.results; print('numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
