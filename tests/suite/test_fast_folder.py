"""Where the tests write."""

from __future__ import annotations

from pathlib import Path

from tests.suite.fast_folder import fast_folder


def test_missing_parent_gives_no_folder(tmp_path: Path) -> None:
    with fast_folder(tmp_path / "absent") as folder:
        assert folder == ""


def test_fast_folder_is_deleted_at_the_end(tmp_path: Path) -> None:
    with fast_folder(tmp_path) as folder:
        if folder:
            Path(folder, "file").touch()
    assert not list(tmp_path.iterdir())
