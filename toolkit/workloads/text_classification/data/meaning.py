"""Whether another run's outputs and word vectors belong to the same labels and words. Imports no torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from toolkit.data.prepared.lookup import read_meta
from toolkit.files import read_json
from toolkit.nlp.exported_files import ExportedFiles
from toolkit.run.run_dir import RunDir
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data import layout
from toolkit.workloads.text_classification.files import ClassificationFiles


def other_labels(data: TextTable, prepared: Path | None, run: Path) -> str:
    """Return the first output that stands for another label; empty without one, or if it is unknown."""
    stored = read_json(ClassificationFiles(RunDir(run)).encoding) or {}
    here = data.labels or (read_meta(prepared).get("labels") if prepared else None)
    return _first("output", stored.get("labels"), here)


def other_words(prepared: Path | None, run: Path) -> str:
    """Return the first word vector that is that of another word."""
    folders = (ExportedFiles(RunDir(run)).encoding, prepared)
    there, here = ((folder and read_json(folder / layout.VOCABULARY)) or {} for folder in folders)
    return _first("word vector", there.get("tokens"), here.get("tokens"))


def _first(what: str, there: Sequence[str] | None, here: Sequence[str] | None) -> str:
    """Return the first place at which two lists differ; lengths are compared with the shapes."""
    for number, (old, new) in enumerate(zip(there or (), here or (), strict=False), start=1):
        if old != new:
            return f"its {what} {number} belongs to {old!r}, in these data to {new!r}"
    return ""
