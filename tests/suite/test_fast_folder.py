"""Where the tests write."""

from __future__ import annotations

from pathlib import Path

from tests.suite.fast_folder import fast_folder


def test_a_folder_that_is_not_there_gives_none(tmp_path: Path) -> None:
    with fast_folder(tmp_path / "absent") as folder:
        assert folder == ""


def test_it_is_gone_at_the_end(tmp_path: Path) -> None:
    with fast_folder(tmp_path) as folder:
        if folder:
            Path(folder, "file").touch()
    assert not list(tmp_path.iterdir())
