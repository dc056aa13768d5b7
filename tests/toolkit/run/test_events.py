"""Events are lines with a time, and an error in writing one never ends a run."""

from __future__ import annotations

import time
from pathlib import Path

from toolkit.files import read_json_lines
from toolkit.run.events import note_event
from toolkit.run.run_dir import RunDir


def test_event_is_a_line_with_its_time_and_facts(tmp_path: Path) -> None:
    run, before = RunDir(tmp_path), time.time()
    note_event(run, "save", step=3)
    note_event(run, "stop", reason="SIGTERM")
    first, second = read_json_lines(run.events)
    assert (first["event"], first["step"]) == ("save", 3)
    assert (second["event"], second["reason"]) == ("stop", "SIGTERM")
    assert before <= first["time"] <= second["time"] <= time.time()


def test_unwritable_event_does_not_raise(tmp_path: Path) -> None:
    note_event(RunDir(tmp_path / "missing"), "save", step=3)
    assert not (tmp_path / "missing").exists()
