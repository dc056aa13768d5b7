"""What `report` returned, written where the report of the run reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolkit.files import write_json
from toolkit.run.run_dir import RunDir

#: In the artifacts of a run.
SECTIONS = "report_sections.json"
_EXPECTED = "expected a text, a list of dictionaries (the rows of a table), or a figure of matplotlib"


def write_sections(run: RunDir, returned: Any) -> None:
    """Write sections by their titles. Raises TypeError where they are none."""
    if returned is None:
        return
    if not isinstance(returned, Mapping):
        raise TypeError(f"report returned {type(returned).__name__}, expected a dictionary by titles")
    run.artifacts.mkdir(exist_ok=True)
    sections = [
        {"title": str(title), **_section(run, f"own_{number}", str(title), value)}
        for number, (title, value) in enumerate(returned.items(), start=1)
    ]
    write_json(run.artifact(SECTIONS), sections)


def _section(run: RunDir, name: str, title: str, value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"text": value}
    if hasattr(value, "savefig"):
        value.savefig(run.artifact(f"{name}.png"), dpi=150)
        return {"figure": name}
    if isinstance(value, Sequence) and all(isinstance(row, Mapping) for row in value):
        head = list(dict.fromkeys(str(name) for row in value for name in row))
        rows = [{str(name): cell for name, cell in row.items()} for row in value]
        return {"head": head, "rows": [[_cell(row.get(name, "")) for name in head] for row in rows]}
    raise TypeError(f"report returned {type(value).__name__} for {title!r}, {_EXPECTED}")


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
