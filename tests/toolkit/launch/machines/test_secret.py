"""Machines with a shared folder of runs exchange a secret through it; others need a secret from the user."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from toolkit.distributed.secure.secret import SECRET_FILE
from toolkit.errors import RendezvousError
from toolkit.launch.machines.secret import known_secrets, offered_secret

PORT = 29500


def test_a_secret_is_in_the_shared_folder_during_the_meeting_only(tmp_path: Path) -> None:
    folder = tmp_path / "experiments"
    assert known_secrets(folder, {}) == []
    with offered_secret(folder, PORT, {}) as secret:
        assert known_secrets(folder, {}) == [secret]
        (path,) = folder.iterdir()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert known_secrets(folder, {}) == []
    assert not [*folder.iterdir()]


def test_a_meeting_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "experiments"
    with pytest.raises(RendezvousError), offered_secret(folder, PORT, {}):
        raise RendezvousError("node 1 has not come")
    assert not folder.parent.exists()


def test_a_folder_with_runs_is_kept(tmp_path: Path) -> None:
    with suppress(RendezvousError), offered_secret(tmp_path / "experiments", PORT, {}):
        (tmp_path / "experiments" / "run-1").mkdir()
        raise RendezvousError("node 1 has not come")
    assert [entry.name for entry in (tmp_path / "experiments").iterdir()] == ["run-1"]


def test_two_meetings_in_one_folder_do_not_disturb_each_other(tmp_path: Path) -> None:
    with offered_secret(tmp_path, PORT, {}) as first, offered_secret(tmp_path, PORT + 1, {}) as second:
        assert sorted(known_secrets(tmp_path, {})) == sorted([first, second])


def test_a_secret_left_by_a_killed_machine_is_replaced(tmp_path: Path) -> None:
    left = offered_secret(tmp_path, PORT, {}).__enter__()
    with offered_secret(tmp_path, PORT, {}) as secret:
        assert known_secrets(tmp_path, {}) == [secret]
        assert secret != left


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_secret_file_of_another_user_is_ignored(tmp_path: Path) -> None:
    with offered_secret(tmp_path, PORT, {}):
        (path,) = tmp_path.iterdir()
        os.chown(path, 65534, 65534)
        assert known_secrets(tmp_path, {}) == []


def test_a_given_secret_needs_no_folder(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_text("a secret that was copied by hand")
    given.chmod(0o600)
    environ = {SECRET_FILE: str(given)}
    with offered_secret(tmp_path / "here", PORT, environ) as secret:
        assert known_secrets(tmp_path / "there", environ) == [secret]
        assert not (tmp_path / "here").exists()
