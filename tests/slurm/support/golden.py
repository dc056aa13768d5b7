"""Batch scripts and their golden files."""

from __future__ import annotations

import os
from pathlib import Path

from slurm.submission.batch.folder_guard import LINES

#: Stands in a golden file for the lines that every script has.
_GUARD = "# (the lines of slurm.submission.batch.folder_guard, as in single_node.sh)"


def assert_golden(script: str, golden: Path) -> None:
    """Compare a script with its golden file; with STK_WRITE_GOLDEN, write the file anew."""
    if golden.name != "single_node.sh":
        script = script.replace("\n".join(LINES), _GUARD)
    if os.environ.get("STK_WRITE_GOLDEN"):
        golden.write_text(script, encoding="utf-8", newline="")
    assert script == golden.read_bytes().decode()
