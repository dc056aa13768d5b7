"""The notebook of examples/digits: its cells run, in their order, in one fresh interpreter."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import stk

EXAMPLE = Path(__file__).parents[5] / "examples" / "digits"

#: Runs the cells of a notebook as Jupyter would, and names the cell that raises.
_READER = """
import json, sys
from pathlib import Path
sys.path.insert(0, "")
names = {"__name__": "__main__"}
for number, cell in enumerate(json.loads(Path(sys.argv[1]).read_text())["cells"], start=1):
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
"""


def execute(notebook: Path) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name != "STK_EXPERIMENT_DIR"}
    command = [sys.executable, "-c", _READER, notebook.name]
    return subprocess.run(
        command, cwd=notebook.parent, env=environ, capture_output=True, text=True, check=False
    )


def notebook_of(folder: Path, cells: Iterable[str]) -> Path:
    file = folder / "notebook.ipynb"
    file.write_text(json.dumps({"cells": [{"cell_type": "code", "source": [cell]} for cell in cells]}))
    return file


def test_first_cells_plan_the_run_and_all_cells_use_public_names(tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLE, tmp_path / "digits")
    cells = json.loads((EXAMPLE / "notebook.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert set(re.findall(r"stk\.(\w+)", "\n".join(code))) <= set(stk.__all__)
    done = execute(notebook_of(folder, code[:2]))
    assert "#SBATCH" in done.stdout, done.stderr


@pytest.mark.slow
def test_all_cells_of_the_notebook_run(tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLE, tmp_path / "digits")
    done = execute(folder / "notebook.ipynb")
    assert done.returncode == 0, done.stderr
    assert "#SBATCH" in done.stdout
    (run,) = (folder / "experiments").glob("digits-*")
    assert (run / "result.json").is_file()


def test_notebook_is_stored_without_outputs() -> None:
    cells = json.loads((EXAMPLE / "notebook.ipynb").read_text())["cells"]
    assert all(not cell.get("outputs") for cell in cells)
