"""One process builds a folder; the others wait as long as it is alive."""

from __future__ import annotations

import errno
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from filelock import FileLock

from toolkit.data.prepared import build_once
from toolkit.data.prepared.build_once import publish_once
from toolkit.errors import DataError
from toolkit.reliability.stop import StoppedEarly


def test_a_waiting_process_does_not_time_out_while_the_builder_is_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "set"
    is_begun, is_waited_for = threading.Event(), threading.Event()
    seen: list[list[tuple[str, int]]] = []
    look = build_once._beats

    def after_a_beat(path: Path) -> list[tuple[str, int]]:
        # However busy the machine is, the maker has shown a sign of life between two looks.
        patience = time.monotonic() + 60
        while (beats := look(path)) in seen and time.monotonic() < patience:
            if is_waited_for.wait(0.001):
                break
        seen.append(beats)
        # Each time limit that runs out costs two looks.
        if len(seen) > 6:
            is_waited_for.set()
        return beats

    def fill(folder: Path) -> None:
        (folder / "part").touch()
        is_begun.set()
        is_waited_for.wait()

    monkeypatch.setattr(build_once, "_BEAT_S", 0.001)
    with ThreadPoolExecutor() as pool:
        maker = pool.submit(publish_once, path, fill, path.exists, 1.0)
        is_begun.wait()
        monkeypatch.setattr(build_once, "_beats", after_a_beat)
        try:
            assert not publish_once(path, fill, path.exists, 0.01)
        finally:
            is_waited_for.set()
        assert maker.result()
    assert (path / "part").exists()


def test_waiting_for_a_builder_without_heartbeats_fails(tmp_path: Path) -> None:
    path = tmp_path / "set"
    (tmp_path / ".set.4711.node7.tmp").mkdir()
    left = tmp_path / ".set.12.node3.tmp"
    left.mkdir()
    os.utime(left, (1, 1))
    with (
        FileLock(tmp_path / ".set.lock"),
        pytest.raises(DataError, match="process 4711 on node7 is making, without a sign of life"),
    ):
        publish_once(path, Path.touch, path.exists, 0.05)


def test_waiting_process_leaves_when_it_is_asked_to(tmp_path: Path) -> None:
    def leave() -> None:
        raise StoppedEarly

    with FileLock(tmp_path / ".set.lock"), pytest.raises(StoppedEarly):
        publish_once(tmp_path / "set", Path.touch, (tmp_path / "set").exists, 3600.0, leave)


def test_passing_fault_of_a_file_system_is_not_the_users_input(tmp_path: Path) -> None:
    def fails(folder: Path) -> None:
        raise OSError(errno.ESTALE, "Stale file handle")

    with pytest.raises(OSError, match="Stale"):
        publish_once(tmp_path / "set", fails, (tmp_path / "set").exists, 1.0)


@pytest.mark.parametrize("error", [DataError("no"), KeyboardInterrupt()])
def test_another_process_can_build_after_a_failed_build(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "set"

    def fail(folder: Path) -> None:
        raise error

    with pytest.raises(type(error)):
        publish_once(path, fail, path.exists, 1.0)
    assert publish_once(path, lambda folder: None, path.exists, 1.0)
    assert [each.name for each in tmp_path.iterdir() if each.name.endswith(".tmp")] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of another user")
def test_leftovers_of_another_user_do_not_keep_a_process_from_building(
    shared: Path, request: pytest.FixtureRequest
) -> None:
    left = shared / ".set.4711.node7.tmp"
    left.mkdir()
    (left / "part").touch()
    request.getfixturevalue("ordinary_user")
    path = shared / "set"
    assert publish_once(path, lambda folder: None, path.exists, 1.0)
