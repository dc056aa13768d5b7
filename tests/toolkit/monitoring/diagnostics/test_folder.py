"""The checks of a folder's file system are bounded and leave no files."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.patience import PATIENCE_S
from toolkit.monitoring.diagnostics import folder as probe
from toolkit.monitoring.diagnostics.child_process import command
from toolkit.monitoring.diagnostics.folder import PREFIX, folder, mount


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_BYTES", 1 << 20)
    monkeypatch.setattr(probe, "_BLOCK", 1 << 18)


def test_an_ordinary_folder_passes_every_check(tmp_path: Path) -> None:
    tried = folder(tmp_path)["tried"]
    names = ("renames_over", "creates_once", "hard_links", "symlinks", "flock", "fcntl", "mmap", "keeps_case")
    assert {name: tried[name] for name in names} == dict.fromkeys(names, True)
    assert tried["speed"]["mb"] == 1
    assert tried["speed"]["write_mb_s"] > 0
    assert tried["sync_s"] >= 0
    assert abs(tried["clock_ahead_s"]) < 5


def test_a_missing_folder_is_checked_by_its_parent_which_has_no_files_afterwards(tmp_path: Path) -> None:
    facts = folder(tmp_path / "not" / "yet")
    assert facts["tried"]["renames_over"]
    assert (facts["is_there"], list(tmp_path.iterdir())) == (False, [])


def test_a_check_without_tries_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_try_out", lambda parent: pytest.fail("it wrote"))
    facts = folder(tmp_path, tries=False)
    assert facts["free_mb"] > 0
    assert facts["tried"] is None


def test_folder_that_allows_no_deletion_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patched:
        patched.setattr(os, "rmdir", refuse)
        assert folder(tmp_path)["tried"]["renames_over"]


def test_a_failed_check_is_reported_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(fcntl, "flock", refuse)
    tried = folder(tmp_path)["tried"]
    assert tried["hard_links"] == tried["flock"] == {"error": "Operation not supported"}
    assert tried["renames_over"]


def test_locks_without_effect_are_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    assert folder(tmp_path)["tried"]["flock"] is False


def test_speed_check_is_skipped_if_space_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_ROOM", 1 << 40)
    assert folder(tmp_path)["tried"]["speed"] == {"error": "too little free space to try"}


def test_the_speed_check_stops_after_its_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_LONGEST_S", 0.0)
    tried = folder(tmp_path)["tried"]
    assert tried["speed"]["mb"] < 1
    assert tried["speed"]["write_mb_s"] > 0
    assert tried["sync_s"] > 0


def test_a_probe_ended_by_sigterm_removes_its_folder(tmp_path: Path) -> None:
    """Stopped while it waits for a pipe in the folder's place: a file system that hangs."""
    os.mkfifo(tmp_path / "pipe")
    code = (
        "import signal, sys; from pathlib import Path\n"
        "from toolkit.monitoring.diagnostics import __main__ as main, folder\n"
        "signal.signal(signal.SIGTERM, main._leave)\n"
        "folder._ATTEMPTS = {'pipe': lambda place: open(place.parent / 'pipe').read()}\n"
        "folder.folder(Path(sys.argv[1]))"
    )
    process = subprocess.Popen([command([])[0], "-c", code, str(tmp_path)])
    with open(tmp_path / "pipe", "w"):  # opens when the other side is there
        process.send_signal(signal.SIGTERM)
    # The end of the pipe wakes a process that got the signal after its last look and before it began to read.
    assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert list(tmp_path.glob(f"{PREFIX}*")) == []


MOUNTS = """\
/dev/sda1 / ext4 rw,relatime 0 0
home:/export /home nfs4 rw,soft,vers=4.2 0 0
scratch /home/my\\040data lustre rw,flock 0 0
late /home tmpfs rw 0 0
"""


@pytest.mark.parametrize(
    "path, kind",
    [("/etc", "ext4"), ("/home/me", "tmpfs"), ("/home/my data/x", "lustre"), ("/homeless", "ext4")],
)
def test_the_file_system_is_that_of_the_innermost_and_latest_mount(
    tmp_path: Path, path: str, kind: str
) -> None:
    table = tmp_path / "mounts"
    table.write_text(MOUNTS)
    assert mount(Path(path), table)["kind"] == kind


@given(st.text(max_size=200))
def test_any_table_of_mounts_is_read_without_an_error(text: str) -> None:
    class Table:
        def read_text(self, **_: object) -> str:
            return text

    mount(Path("/"), Table())
