"""Registering entry points as an installation does, without installing anything."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOY = ROOT / "tests" / "toy_workload"
#: On PYTHONPATH it lets reports stand without drawn figures.
UNDRAWN = ROOT / "tests" / "undrawn"


def register(project: Path, site: Path, *, is_wanted: Callable[[str], bool] = lambda code: True) -> None:
    """Write the metadata of a project into a folder that stands on the path of modules.

    project    the folder of its pyproject.toml
    is_wanted  whether an entry point is registered, by its code "module:attribute"
    """
    facts = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    folder = site / f"{facts['name'].replace('-', '_')}-{facts['version']}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {facts['name']}\nVersion: {facts['version']}\n"
    )
    lines = []
    for group, points in facts["entry-points"].items():
        found = [f"{name} = {code}" for name, code in points.items() if is_wanted(code)]
        lines += [f"[{group}]", *found]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")
