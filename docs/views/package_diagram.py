"""The picture of the house in CONTRIBUTING.md, drawn from the imports: a room uses what stands below it."""

from __future__ import annotations

import ast
import html
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import grimp
from drawing import save

_FLOORS = ("slurm", "toolkit")
#: The imports that the contracts in pyproject.toml allow against the direction.
_DEFERRED = ("slurm.submission.executor", "slurm.job.task")
_STYLE = """
body { margin: 0; padding: 18px; background: #fff; font: 13px/1.35 "DejaVu Sans", sans-serif; color: #1b1f27 }
h2 { font-size: 17px; margin: 4px 0 8px } h2 small { font-weight: normal; color: #667 }
.floor { border: 2px solid #8a94a6; border-radius: 10px; padding: 10px 14px; margin-bottom: 14px }
.level { display: flex; gap: 8px; margin-bottom: 8px }
.room { flex: 1; border-radius: 6px; padding: 6px 9px; background: #eaf0f8 }
.toolkit .room { background: #e9f4ea } .room b { font-family: "DejaVu Sans Mono", monospace }
.room div { font-size: 11px; color: #445 }
"""


def make(pictures: Path) -> None:
    """Draw both floors."""
    graph = grimp.build_graph(*_FLOORS)
    graph.remove_import(importer=_DEFERRED[0], imported=_DEFERRED[1])
    floors = "".join(_floor(graph, floor) for floor in _FLOORS)
    page = f'<!DOCTYPE html><meta charset="utf-8"><style>{_STYLE}</style>{floors}'
    save(page, pictures / "package_diagram.png", width=1160, height=1600)


def _floor(graph: grimp.ImportGraph, floor: str) -> str:
    levels = "".join(
        f'<div class="level">{"".join(map(_room, rooms))}</div>' for rooms in _levels(_uses(graph, floor))
    )
    return f'<div class="floor {floor}"><h2>{floor}/ <small>{_summary(floor)}</small></h2>{levels}</div>'


def _room(room: str) -> str:
    return f'<div class="room"><b>{room.partition(".")[2]}</b><div>{_summary(room)}</div></div>'


def _summary(module: str) -> str:
    """The first line of a module's docstring."""
    spec = find_spec(module)
    source = Path(str(spec and spec.origin)).read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(source)) or ""
    return html.escape(docstring.partition("\n")[0])


def _uses(graph: grimp.ImportGraph, floor: str) -> dict[str, set[str]]:
    """For each room the rooms of its floor that it imports."""
    rooms = {room for room in graph.find_children(floor) if room != f"{floor}.__main__"}
    for room in rooms:
        if graph.find_children(room):
            graph.squash_module(room)
    return {room: graph.find_modules_directly_imported_by(room) & rooms - {room} for room in rooms}


def _levels(uses: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """The rooms that stand side by side, from the top."""

    @cache
    def level(room: str) -> int:
        return 1 + max(map(level, uses[room]), default=0)

    for height in range(max(map(level, uses)), 0, -1):
        yield sorted(room for room in uses if level(room) == height)
