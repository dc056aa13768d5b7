"""A run keeps the code of its own workload alone."""

from __future__ import annotations

from pathlib import Path

from toolkit.registry import installed
from toolkit.run.kept_code.code_snapshot import copy_code


def test_no_code_of_other_workloads_is_copied(tmp_path: Path) -> None:
    copy_code(tmp_path / "code", ["text_classification"])
    copied = (tmp_path / "code" / "toolkit" / "workloads").glob("*/__init__.py")
    assert [path.parent.name for path in copied] == [installed("text_classification").name]
