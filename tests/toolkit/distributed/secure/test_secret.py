"""All processes of an attempt share one secret, which no other user can read."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from secrets import token_hex

import pytest

from toolkit.distributed.secure.secret import SECRET_FILE, given_secret, shared_secret
from toolkit.errors import UserError


def private(path: Path, content: str) -> Path:
    path.write_text(content)
    path.chmod(0o600)
    return path


def test_concurrent_processes_get_the_same_secret(tmp_path: Path) -> None:
    path = tmp_path / "ranks" / "start.secret"
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(lambda _: shared_secret(path, "start", {}), range(8))]
    assert len({*found}) == 1
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_the_secret_file_is_readable_by_its_owner_alone_under_any_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        shared_secret(tmp_path / "secret", "start", {})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_secrets_differ_by_purpose(tmp_path: Path) -> None:
    assert shared_secret(tmp_path / "secret", "one", {}) != shared_secret(tmp_path / "secret", "other", {})


def test_a_given_secret_gives_the_same_secret_in_unshared_folders(tmp_path: Path) -> None:
    environ = {SECRET_FILE: str(private(tmp_path / "given", token_hex(32)))}
    here, there = tmp_path / "here" / "secret", tmp_path / "there" / "secret"
    assert shared_secret(here, "start", environ) == shared_secret(there, "start", environ)
    assert not here.exists()


def test_no_secret_is_given_without_the_variable() -> None:
    assert given_secret({}) is None
    assert given_secret({SECRET_FILE: ""}) is None


def test_a_missing_secret_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"{SECRET_FILE} names {tmp_path}/gone"):
        given_secret({SECRET_FILE: f"{tmp_path}/gone"})


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_secret_file_readable_by_others_is_refused(tmp_path: Path, mode: int) -> None:
    path = private(tmp_path / "secret", token_hex(32))
    path.chmod(mode)
    with pytest.raises(UserError, match=f"{path}.* mode {mode:o}"):
        shared_secret(path, "start", {})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_secret_file_of_another_user_is_refused(tmp_path: Path) -> None:
    """In a group's folder anybody can predict the name of an attempt and create its secret first."""
    path = private(tmp_path / "secret", token_hex(32))
    os.chown(path, 65534, 65534)
    with pytest.raises(UserError, match=f"{path}.* belongs to user 65534"):
        shared_secret(path, "start", {})


def test_a_pipe_in_place_of_the_secret_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "secret", 0o600)
    with pytest.raises(UserError, match="not an ordinary file"):
        shared_secret(tmp_path / "secret", "start", {})


def test_a_short_secret_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="expected at least 16"):
        shared_secret(private(tmp_path / "secret", "short\n"), "start", {})
