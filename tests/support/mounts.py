"""File systems mounted for a test, such as folders that even root cannot write."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


def mount(*arguments: str | Path) -> None:
    """Mount, or skip the test where that is not allowed."""
    if os.geteuid() != 0 or _run("mount", *arguments) != 0:
        give_up("only root may mount a file system")


def give_up(reason: str) -> None:
    """Skip the test, but fail it in CI, which is root: an ordinary user has no file systems to give."""
    end = pytest.fail if os.environ.get("CI") else pytest.skip
    end(reason)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder read-only for all users: by a mount, because permissions do not stop root."""
    if os.geteuid() != 0:
        folder.chmod(0o500)
        yield
        folder.chmod(0o700)
        return
    mount("--bind", folder, folder)
    try:
        mount("-o", "remount,ro,bind", folder)
        yield
    finally:
        assert _run("umount", folder) == 0


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount an empty file system of 60 MB on a folder."""
    mount("-t", "tmpfs", "-o", "size=60m", "tmpfs", folder)
    try:
        yield
    finally:
        assert _run("umount", "--lazy", folder) == 0


def fill(folder: Path) -> Path:
    """Take all the room that is left on the disk of a folder; return the file to remove."""
    path = folder / "fill"
    with open(path, "ab", buffering=0) as stream:
        for size in (1 << 20, 1 << 12):
            with suppress(OSError):
                while stream.write(b"x" * size):
                    pass
    return path


def _run(*command: str | Path) -> int:
    # Tests of commands change PATH.
    return subprocess.run(command, env={"PATH": os.defpath}, capture_output=True).returncode
