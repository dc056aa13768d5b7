"""How long saves took, from the events of the newest runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from slurm.doctor.checks import saves as module
from slurm.doctor.checks.saves import measured_saves, saves_of
from toolkit.run.run_dir import RunDir


def run(parent: Path, name: str, *lines: object, age_s: int = 0) -> RunDir:
    made = RunDir(parent / name)
    made.path.mkdir()
    made.config.touch()
    made.events.write_text(
        "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    )
    os.utime(made.events, (1e9 - age_s, 1e9 - age_s))
    return made


def save(seconds: float, paused_s: float = 0.0, size: int = 100) -> dict[str, object]:
    return {"event": "save", "seconds": seconds, "paused_s": paused_s, "bytes": size}


def test_pauses_of_the_writer_do_not_count(tmp_path: Path) -> None:
    run(tmp_path, "a-1", save(10.0, 7.0), save(2.0), {"event": "signal"})
    run(tmp_path, "b-2", save(5.0, size=900))
    found = measured_saves(tmp_path)
    assert (found.runs, found.saves) == (2, 3)
    assert (found.median_s, found.longest_s, found.longest_run) == (3.0, 5.0, "b-2")


def test_only_the_newest_runs_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RUNS", 1)
    run(tmp_path, "old-1", save(99.0), age_s=1000)
    run(tmp_path, "new-2", save(1.0))
    found = measured_saves(tmp_path)
    assert found.longest_run == "new-2"


def test_damaged_lines_and_runs_are_passed_over(tmp_path: Path) -> None:
    lines = (
        '{"event": "save", "seconds": 1',
        "[]",
        "null",
        '{"event": "save"}',
        '{"event": "save", "seconds": []}',
    )
    broken = run(tmp_path, "broken-1", *lines, save(4.0))
    assert list(saves_of(broken)) == [(4.0, 100)]
    empty = run(tmp_path, "empty-2")
    empty.events.unlink()
    (tmp_path / "folder-3").mkdir()
    assert measured_saves(tmp_path) is not None


def test_only_the_end_of_long_events_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TAIL_BYTES", 150)
    long = run(tmp_path, "long-1", *(save(float(number)) for number in range(100)))
    assert [seconds for seconds, _ in saves_of(long)] == [98.0, 99.0]


@pytest.mark.parametrize("name", [".", "nowhere"])
def test_without_runs_nothing_was_measured(tmp_path: Path, name: str) -> None:
    assert measured_saves(tmp_path / name) is None
