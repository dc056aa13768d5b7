"""Which run folders are trusted: owner, write permission, and folders that `stk` creates."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.slurm.support.user import CONFIG
from toolkit.config import load, run_id
from toolkit.errors import UntrustedFolder, UserError
from toolkit.run import folder_trust
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir

STRANGER, SHARED_GROUP = 65534, 12345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    made = RunDir(tmp_path / "run-1")
    for file in (
        "config.yaml",
        "code/toolkit/training/worker.py",
        "code/slurm/job/task.py",
        "submitit/job.pkl",
    ):
        (made.path / file).parent.mkdir(parents=True, exist_ok=True)
        (made.path / file).touch()
    return made


@as_root
@pytest.mark.parametrize("what", ["", "config.yaml", "code", "code/toolkit/training/worker.py", "submitit"])
def test_path_of_another_user_is_refused_with_owner_mode_and_option(run: RunDir, what: str) -> None:
    os.chown(run.path / what, STRANGER, STRANGER)
    with pytest.raises(UntrustedFolder) as caught:
        folder_trust.check_run(run)
    mode = stat.filemode((run.path / what).stat().st_mode)
    for fact in (str(run.path / what), "user nobody", mode, "--trust-folder"):
        assert fact in str(caught.value)


@pytest.mark.parametrize("what", ["", "config.yaml", "code/slurm", "code/slurm/job/task.py", "submitit"])
@pytest.mark.parametrize("bits", [stat.S_IWOTH, stat.S_IWOTH | stat.S_ISVTX])
def test_world_writable_path_is_refused(run: RunDir, what: str, bits: int) -> None:
    path = run.path / what
    path.chmod(path.stat().st_mode | bits)
    with pytest.raises(UntrustedFolder, match="everybody"):
        folder_trust.check_run(run)


@as_root
def test_path_writable_by_a_shared_group_is_refused(run: RunDir) -> None:
    os.chown(run.code, 0, SHARED_GROUP)
    folder_trust.check_run(run)
    run.code.chmod(0o775)
    with pytest.raises(UntrustedFolder, match=str(SHARED_GROUP)):
        folder_trust.check_run(run)


@as_root
def test_path_writable_by_the_users_private_group_is_trusted(run: RunDir) -> None:
    for path in (run.path, run.code, run.config):
        path.chmod(path.stat().st_mode | stat.S_IWGRP)
    folder_trust.check_run(run)


@as_root
def test_folder_of_root_is_trusted_by_ordinary_users(run: RunDir, ordinary_user: None) -> None:
    run_of_root = RunDir(Path("/usr"))
    folder_trust.check_folder(run_of_root.path)


def test_target_of_a_link_is_checked(run: RunDir, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    run.code.rename(elsewhere)
    run.code.symlink_to(elsewhere)
    folder_trust.check_run(run)
    (elsewhere / "slurm" / "job" / "task.py").chmod(0o666)
    with pytest.raises(UntrustedFolder):
        folder_trust.check_run(run)


def test_folder_in_the_trust_variable_is_not_checked(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    run.path.chmod(0o777)
    for trusted in (run.path, run.path.parent, "*", f"/nowhere:{run.path}"):
        monkeypatch.setenv(folder_trust.VARIABLE, str(trusted))
        folder_trust.check_run(run)
    for other in ("", f"{run.path}x", run.code):
        monkeypatch.setenv(folder_trust.VARIABLE, str(other))
        with pytest.raises(UntrustedFolder):
            folder_trust.check_run(run)


@pytest.fixture
def variable(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """What the processes that this one starts are told is trusted; afterwards nothing is any more."""
    monkeypatch.setenv(folder_trust.VARIABLE, "/before")
    yield lambda: os.environ[folder_trust.VARIABLE]
    folder_trust.trust([])


def test_option_without_a_name_trusts_only_the_checked_folders(
    run: RunDir, tmp_path: Path, variable: Callable[[], str]
) -> None:
    other, own = tmp_path / "run-2", tmp_path / "run-3"
    for path, mode in ((run.path, 0o777), (other, 0o777), (own, 0o755)):
        path.mkdir(exist_ok=True)
        path.chmod(mode)
    folder_trust.trust([""])
    folder_trust.check_run(run)
    folder_trust.check_run(RunDir(own))
    assert variable() == f"/before:{run.path}"
    # As in a process that this one starts.
    folder_trust.trust([])
    folder_trust.check_run(run)
    with pytest.raises(UntrustedFolder):
        folder_trust.check_folder(other)


def test_option_with_a_name_trusts_that_folder_and_its_contents(
    run: RunDir, tmp_path: Path, variable: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run.path.chmod(0o777)
    (tmp_path / "link").symlink_to(run.path.parent)
    monkeypatch.chdir(tmp_path)
    folder_trust.trust(["link"])
    folder_trust.check_run(run)
    assert variable() == f"/before:{run.path.parent}"
    (tmp_path.parent / "beside").mkdir(mode=0o700)
    (tmp_path.parent / "beside").chmod(0o777)
    with pytest.raises(UntrustedFolder):
        folder_trust.check_folder(tmp_path.parent / "beside")


def test_folder_with_a_colon_in_its_path_is_refused(tmp_path: Path, variable: Callable[[], str]) -> None:
    planted = tmp_path / "a:" / "b"
    planted.mkdir(parents=True)
    planted.chmod(0o777)
    with pytest.raises(UserError, match="colons separate folders"):
        folder_trust.trust([str(planted)])
    folder_trust.trust([""])
    with pytest.raises(UserError, match="colons separate folders"):
        folder_trust.check_folder(planted)
    assert variable() == "/before"


@pytest.fixture
def shared_group() -> Iterator[None]:
    """Files that are made meanwhile belong to a group of several, which the umask lets write."""
    group, mask = os.getegid(), os.umask(0o002)
    if os.geteuid() == 0:
        os.setegid(SHARED_GROUP)
    yield
    os.umask(mask)
    os.setegid(group)


def test_new_run_folder_is_trusted_under_a_group_writable_umask(tmp_path: Path, shared_group: None) -> None:
    (tmp_path / "tiny.yaml").write_text(CONFIG)
    experiment = load(tmp_path / "tiny.yaml", [])
    run = create_run(experiment, tmp_path / "experiments")
    folder_trust.check_run(run)
    assert create_run(experiment, tmp_path / "experiments") == run
    # Where Python puts what it compiles of the run's code.
    assert not (run.code / "toolkit" / "__pycache__").stat().st_mode & 0o022


@as_root
def test_run_is_not_created_in_a_folder_of_another_user(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(CONFIG)
    experiment = load(tmp_path / "tiny.yaml", [])
    planted = tmp_path / "experiments" / run_id(experiment)
    planted.mkdir(parents=True)
    os.chown(planted, STRANGER, STRANGER)
    with pytest.raises(UntrustedFolder):
        create_run(experiment, tmp_path / "experiments")
    assert list(planted.iterdir()) == []
