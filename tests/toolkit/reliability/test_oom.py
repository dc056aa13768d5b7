"""The kernel's count of processes killed for lack of memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.reliability.oom import oom_kills


@pytest.mark.parametrize(
    "text, count", [("nr_free_pages 12\noom_kill 3\noom_kill_x 9\n", 3), ("nr_free_pages 12\n", None)]
)
def test_the_oom_kill_count_is_read(tmp_path: Path, text: str, count: int | None) -> None:
    path = tmp_path / "vmstat"
    path.write_text(text)
    assert oom_kills(path) == count


def test_a_system_without_the_count_gives_none(tmp_path: Path) -> None:
    assert oom_kills(tmp_path / "vmstat") is None
