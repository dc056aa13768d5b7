"""Entry points of packages that are not installed, and the environment of commands in tests."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOY = ROOT / "tests" / "toy_workload"
#: On PYTHONPATH it lets reports stand without drawn figures.
UNDRAWN = ROOT / "tests" / "undrawn"

#: Of a test's surroundings, what would steer the product or Slurm.
_FOREIGN = ("STK_", "SLURM_", "SBATCH_", "SRUN_", "SALLOC_", "TORCHELASTIC_")
_FOREIGN_NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def own_environment() -> dict[str, str]:
    """The environment of the tests without what would steer a command of a user."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_FOREIGN) and name not in _FOREIGN_NAMES
    }


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
