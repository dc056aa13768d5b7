"""A run that continues takes what has changed in its experiment without changing its identity."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.toolkit.support.tiny import tiny
from toolkit.config import load_resolved
from toolkit.precheck.changes import change_warnings
from toolkit.run.create_run import create_run
from toolkit.run.new_settings import setting_messages, take_new_settings
from toolkit.run.run_dir import RunDir


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return create_run(tiny(tmp_path), tmp_path / "runs")


def test_run_that_continues_takes_changed_settings(run: RunDir, tmp_path: Path) -> None:
    before, room = load_resolved(run.config).data.prepared_dir, tmp_path / "room"
    changed = tiny(tmp_path, "checkpoint.keep=5", "train.hang_timeout_s=900", f"data.prepared_dir={room}")
    assert [*setting_messages([(run, changed)])] == [
        f"{run.run_id} continues with train.hang_timeout_s=900.0 (was 300.0), checkpoint.keep=5 (was 2), "
        f"data.prepared_dir={room} (was {before})"
    ]
    take_new_settings(run, changed)
    stored = load_resolved(run.config)
    assert (stored.checkpoint.keep, stored.train.hang_timeout_s) == (5, 900.0)
    assert stored.data.prepared_dir == str(room)
    assert create_run(changed, run.path.parent) == run
    assert [*setting_messages([(run, changed)])] == []


def test_unchanged_settings_leave_the_file_as_it_is(run: RunDir, tmp_path: Path) -> None:
    before = run.config.stat()
    take_new_settings(run, tiny(tmp_path, "resources.time=5"))
    # Reading the file changes its time of access.
    after = run.config.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert [*setting_messages([(run, tiny(tmp_path))])] == []


def test_key_that_the_code_of_an_old_run_may_not_know_is_named_and_not_taken(
    run: RunDir, tmp_path: Path
) -> None:
    """The run keeps its own code, which refuses unknown keys."""
    before = yaml.safe_load(run.config.read_text())
    del before["train"]["check_ranks_every"]
    run.config.write_text(yaml.safe_dump(before))
    changed = tiny(tmp_path, "train.check_ranks_every=9")
    take_new_settings(run, changed)
    assert yaml.safe_load(run.config.read_text()) == before
    (message,) = setting_messages([(run, changed)])
    assert "without train.check_ranks_every=9" in message


def test_setting_that_only_the_identity_takes_for_equal_stays_and_is_named(
    run: RunDir, tmp_path: Path
) -> None:
    """`fp32` has the identity of `auto`, which may be bf16 on a GPU."""
    other = create_run(tiny(tmp_path, "train.precision=fp32"), tmp_path / "others")
    take_new_settings(other, tiny(tmp_path))
    assert load_resolved(other.config).train.precision == "fp32"
    (message,) = setting_messages([(other, tiny(tmp_path))])
    assert "train.precision=fp32, not auto" in message
    assert [*setting_messages([(other, tiny(tmp_path, "train.precision=fp32"))])] == []
    other.result.touch()
    (message,) = change_warnings(other, tiny(tmp_path), new_code=False)
    assert "finished with train.precision=fp32, not auto" in message


def test_equal_changes_of_several_runs_are_one_message(run: RunDir, tmp_path: Path) -> None:
    other = create_run(tiny(tmp_path, "seed=9"), run.path.parent)
    runs = [
        (run, tiny(tmp_path, "checkpoint.keep=3")),
        (other, tiny(tmp_path, "seed=9", "checkpoint.keep=3")),
    ]
    assert [*setting_messages(runs)] == ["2 runs continue with checkpoint.keep=3 (was 2)"]
