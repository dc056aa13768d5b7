"""A run with hostile files does not hide the other runs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.slurm.status.folders import new_run, started, submitted
from tests.slurm.support.user import User
from toolkit.run.run_dir import RunDir

DEEP = "[" * 100_000 + "]" * 100_000
VALUES = ["9" * 4000, "9" * 5000, DEEP, '{"a":' * 100_000 + "1" + "}" * 100_000, "NaN", "1e308", "null"]
VALUES += ['"\\u001b[31m"', '"\\ud800"', '"a\\u0000b"', "[1]", "{}", "true", "-1"]

SUBMITTED = {"cluster": "local", "job_id": "local-1", "host": "h", "name": "n", "time": 1.0}
SUBMITTED |= {"boot": "b", "awaits": "/x"}
START = {"attempt": 1, "nonce": "n", "hosts": ["h"], "world_size": 2, "device": "cuda", "time_start": 1.0}
DOCUMENT = {"step": 4, "total_steps": 40, "epoch": 0.2, "time": 1.0, "metrics": {"train_loss": 0.4}}
LINES: dict[str, dict[str, Any]] = {
    "submissions.jsonl": SUBMITTED,
    "attempts.jsonl": {**START, "time_end": 2.0, "first_step": 0, "last_step": 4, "why": "SIGTERM"},
    "events.jsonl": {"event": "not_requeued", "time": 1.0, "reason": "r", "why": "w"},
    "progress.json": DOCUMENT,
    "result.json": DOCUMENT,
    "failure.json": {"class": "exception", "rank": 0, "host": "h", "message": "m", "time": 1.0},
}


@pytest.fixture
def hostile(user: User) -> RunDir:
    """A run that was started, beside another one."""
    user.experiments.mkdir()
    run, other = (new_run(user.experiments, name) for name in ("hostile-00000000", "good-00000000"))
    for each in (run, other):
        started(each)
    return run


def assert_the_other_is_shown(user: User) -> None:
    shown = user.stk("status")
    assert (shown.code, "good-00000000" in shown.out) == (0, True), shown.err
    assert "\x1b" not in shown.out
    rows = json.loads(user.stk("status", "--json").out)
    assert [row["run_id"] for row in rows] == ["good-00000000", "hostile-00000000"]


@pytest.mark.parametrize("name", LINES)
def test_hostile_values_do_not_break_status(user: User, hostile: RunDir, name: str) -> None:
    for other, line in LINES.items():
        if other not in (name, "result.json", "failure.json"):
            (hostile.path / other).write_text(json.dumps(line) + "\n")
    for key in LINES[name]:
        for value in VALUES:
            given = {**LINES[name], key: None}
            text = json.dumps(given).replace(f'"{key}": null', f'"{key}": {value}')
            (hostile.path / name).write_text(text + "\n")
            answer = user.stk("status", "--json")
            assert answer.code == 0, (key, value[:20], answer.err)
            assert '"good-00000000"' in answer.out
    assert_the_other_is_shown(user)


def make_huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


@pytest.mark.parametrize("name", [*LINES, "intent.json", ".alive.lock"])
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(os.mkfifo, id="pipe"),
        pytest.param(lambda path: path.symlink_to("/dev/zero"), id="endless"),
        pytest.param(lambda path: path.symlink_to("nowhere"), id="dangling"),
        pytest.param(lambda path: path.symlink_to(path.name), id="circular"),
        pytest.param(make_huge, id="huge"),
        pytest.param(Path.mkdir, id="folder"),
    ],
)
def test_special_files_in_a_run_folder_do_not_break_status(
    user: User, hostile: RunDir, name: str, make: Callable[[Path], None]
) -> None:
    path = hostile.path / name
    path.unlink(missing_ok=True)
    make(path)
    before = sorted(hostile.path.iterdir())
    assert_the_other_is_shown(user)
    assert sorted(hostile.path.iterdir()) == before


def test_invalid_job_id_makes_the_state_of_its_run_unknown(user: User, hostile: RunDir) -> None:
    submitted(hostile, "zzz")
    (row,) = [row for row in json.loads(user.stk("status", "--json").out) if row["job_id"] == "zzz"]
    assert (row["run_id"], row["state"]) == ("hostile-00000000", "unknown")
    assert "zzz" in row["reason"]


def test_attempt_in_the_future_shows_no_negative_times(user: User, hostile: RunDir) -> None:
    """The clock was put back since."""
    (hostile.path / "attempts.jsonl").unlink()
    started(hostile, time_start=time.time() + 3e7)
    assert "-" not in user.stk("status").out.replace("hostile-", "").replace("good-", "")
