"""Reading one run's folder, also if its files are damaged."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm.status.rows import status
from slurm.status.run_files import read_folder
from tests.slurm.status.folders import new_run, submitted
from toolkit.files import append_json_line, write_json
from toolkit.run.events import last_events, note_event
from toolkit.run.run_dir import RunDir

FILES = ("result", "progress", "failure", "submissions", "attempts", "events", "job", "intent")


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return new_run(tmp_path)


def test_the_newest_submission_counts_and_names_its_array(run: RunDir) -> None:
    submitted(run, "101")
    submitted(run, "102_7", array="study-12345678")
    folder = read_folder(run)
    assert (folder.job_id, folder.submission.array) == ("102_7", "study-12345678")


def test_finished_run_has_no_job_to_ask_for(run: RunDir) -> None:
    submitted(run)
    write_json(run.result, {"state": "finished"})
    assert read_folder(run).job_id is None


def test_a_torn_line_and_a_foreign_one_are_left_out(run: RunDir) -> None:
    submitted(run)
    with open(run.submissions, "a") as stream:
        stream.write('{"cluster": "slurm"}\n[1]\n\n{"cluster": "slurm", "job_')
    assert read_folder(run).job_id == "101"


def test_only_the_newest_events_are_read(run: RunDir) -> None:
    for number in range(500):
        append_json_line(run.events, {"event": "save", "step": number})
    note_event(run, "requeue")
    events = last_events(run)
    assert events[-1].name == "requeue"
    assert 1 < len(events) < 500


def test_damaged_file_is_reported_and_the_rest_is_shown(run: RunDir) -> None:
    run.result.write_text('{"state": "fini')
    run.progress.write_text(json.dumps({"step": 7, "total_steps": 10}))
    (row,) = status([run])
    assert (row.state, row.step, row.reason) == ("finished", 7, "result.json is damaged")


def test_missing_folder_gives_a_row_with_the_reason(tmp_path: Path) -> None:
    (row,) = status([RunDir(tmp_path / "gone")])
    assert row.state == "unknown"
    assert "the folder cannot be read: No such file or directory" in row.reason


def test_folder_in_place_of_a_file_gives_a_row_with_the_reason(run: RunDir) -> None:
    run.progress.mkdir()
    (row,) = status([run])
    assert "progress.json cannot be read: Is a directory" in row.reason


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(FILES),
    content=st.binary(max_size=60)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["step", "time", "metrics", "attempt", "hosts", "class", "job_id", "cluster", "x"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=8,
    ).map(lambda value: json.dumps(value).encode() + b"\n"),
)
def test_run_has_a_row_for_any_content_of_its_files(run: RunDir, name: str, content: bytes) -> None:
    path: Path = getattr(run, name)
    path.write_bytes(content)
    try:
        (row,) = status([run])
        json.loads(json.dumps(row.to_json(), allow_nan=False))
    finally:
        os.unlink(path)
