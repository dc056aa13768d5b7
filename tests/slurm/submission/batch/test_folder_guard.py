"""What a batch script refuses to execute: as `toolkit.run.folder_trust`, but in bash, when the job starts."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from slurm.submission.batch.folder_guard import LINES
from toolkit.run import folder_trust

STRANGER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "it's a `run` $(exit 3)"
    for file in ("config.yaml", "code/toolkit/training/worker.py", "submitit/job.pkl"):
        (made / file).parent.mkdir(parents=True, exist_ok=True)
        (made / file).touch()
    return made


def start(folder: Path, trusted: str = "") -> subprocess.CompletedProcess[str]:
    """Start a batch script that does nothing but check its folder."""
    bash = shutil.which("bash")
    assert bash is not None
    return subprocess.run(
        [bash, "-c", "\n".join([*LINES, "echo executed"])],
        cwd=folder,
        # By PWD bash knows how it came here.
        env={**os.environ, "PWD": str(folder), folder_trust.VARIABLE: trusted},
        capture_output=True,
        text=True,
        check=False,
    )


def was_refused(job: subprocess.CompletedProcess[str]) -> bool:
    assert (job.returncode == 2) == ("executed" not in job.stdout), job
    return job.returncode == 2


def test_a_folder_that_the_user_alone_may_write_is_executed(folder: Path) -> None:
    job = start(folder)
    assert (job.stdout, job.stderr) == ("executed\n", "")


@as_root
@pytest.mark.parametrize("what", ["", "config.yaml", "code", "code/toolkit/training/worker.py", "submitit"])
def test_file_owned_by_another_user_is_refused_and_named(folder: Path, what: str) -> None:
    os.chown(folder / what, STRANGER, STRANGER)
    job = start(folder)
    assert was_refused(job)
    for fact in (str(folder), what, "nobody", "rw", folder_trust.VARIABLE):
        assert fact in job.stderr


@pytest.mark.parametrize("what", ["", "config.yaml", "code/toolkit", "submitit/job.pkl"])
def test_world_writable_file_is_refused(folder: Path, what: str) -> None:
    (folder / what).chmod((folder / what).stat().st_mode | 0o002)
    assert was_refused(start(folder))


@as_root
def test_group_may_write_only_if_it_is_the_users_own(folder: Path) -> None:
    (folder / "code").chmod(0o775)
    assert not was_refused(start(folder))
    os.chown(folder / "code", 0, 12345)
    assert was_refused(start(folder))


def test_writable_file_in_a_private_folder_is_accepted(folder: Path) -> None:
    (folder / "submitit" / "job.pkl").chmod(0o666)
    (folder / "submitit").chmod(0o700)
    assert not was_refused(start(folder))


@pytest.mark.parametrize("named", ["{}", "/nowhere:{}", "{}/..", "*"])
def test_a_folder_that_is_named_as_trusted_is_executed(folder: Path, named: str) -> None:
    folder.chmod(0o777)
    parent = named == "{}/.."
    assert not was_refused(start(folder, str(folder.parent) if parent else named.format(folder)))
    assert was_refused(start(folder, f"{folder}x:/nowhere"))


def test_a_trusted_folder_that_is_reached_by_a_link_is_executed(folder: Path, tmp_path: Path) -> None:
    """--trust-folder names the folder that a link leads to."""
    folder.chmod(0o777)
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert not was_refused(start(link, str(folder)))
