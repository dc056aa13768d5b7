"""The picture of the packages in CONTRIBUTING.md: each package imports only those below it."""

from __future__ import annotations

import ast
import html
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import grimp
from drawing import save

_TOP = ("slurm", "toolkit")
#: Importer and imported module of the upward import that the contracts in pyproject.toml allow.
_DEFERRED = ("slurm.submission.job_pickle", "slurm.job.task")
_STYLE = """
body { margin: 0; padding: 18px; background: #fff; font: 13px/1.35 "DejaVu Sans", sans-serif; color: #1b1f27 }
h2 { font-size: 17px; margin: 4px 0 8px } h2 small { font-weight: normal; color: #667 }
.top { border: 2px solid #8a94a6; border-radius: 10px; padding: 10px 14px; margin-bottom: 14px }
.level { display: flex; gap: 8px; margin-bottom: 8px }
.package { flex: 1; border-radius: 6px; padding: 6px 9px; background: #eaf0f8 }
.toolkit .package { background: #e9f4ea } .package b { font-family: "DejaVu Sans Mono", monospace }
.package div { font-size: 11px; color: #445 }
"""


def make(pictures: Path) -> None:
    """Draw both top-level packages."""
    graph = grimp.build_graph(*_TOP)
    graph.remove_import(importer=_DEFERRED[0], imported=_DEFERRED[1])
    drawn = "".join(_drawn(graph, top) for top in _TOP)
    page = f'<!DOCTYPE html><meta charset="utf-8"><style>{_STYLE}</style>{drawn}'
    save(page, pictures / "package_diagram.png", width=1160, height=1600)


def _drawn(graph: grimp.ImportGraph, top: str) -> str:
    levels = "".join(
        f'<div class="level">{"".join(map(_box, packages))}</div>' for packages in _levels(_uses(graph, top))
    )
    return f'<div class="top {top}"><h2>{top}/ <small>{_summary(top)}</small></h2>{levels}</div>'


def _box(package: str) -> str:
    return f'<div class="package"><b>{package.partition(".")[2]}</b><div>{_summary(package)}</div></div>'


def _summary(module: str) -> str:
    """Return the first line of a module's docstring, as HTML."""
    spec = find_spec(module)
    source = Path(str(spec and spec.origin)).read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(source)) or ""
    return html.escape(docstring.partition("\n")[0])


def _uses(graph: grimp.ImportGraph, top: str) -> dict[str, set[str]]:
    """Return for each package within `top` the other packages there that it imports."""
    packages = {package for package in graph.find_children(top) if package != f"{top}.__main__"}
    for package in packages:
        if graph.find_children(package):
            graph.squash_module(package)
    return {
        package: graph.find_modules_directly_imported_by(package) & packages - {package}
        for package in packages
    }


def _levels(uses: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """Yield the packages of each level, from the top."""

    @cache
    def level(package: str) -> int:
        return 1 + max(map(level, uses[package]), default=0)

    for height in range(max(map(level, uses)), 0, -1):
        yield sorted(package for package in uses if level(package) == height)
