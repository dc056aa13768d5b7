"""The notebook of examples/digits: its cells run, in their order, in one fresh interpreter."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import stk

EXAMPLE = Path(__file__).parents[5] / "examples" / "digits"
CELLS = json.loads((EXAMPLE / "notebook.ipynb").read_text())["cells"]

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


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    """A copy of the notebook, in a copy of its folder."""
    return shutil.copytree(EXAMPLE, tmp_path / "digits") / "notebook.ipynb"


def test_first_cells_plan_the_run_and_all_cells_use_public_names(notebook: Path) -> None:
    code = [cell for cell in CELLS if cell["cell_type"] == "code"]
    used = {name for cell in code for name in re.findall(r"stk\.(\w+)", "".join(cell["source"]))}
    assert used <= set(stk.__all__)
    notebook.write_text(json.dumps({"cells": code[:2]}))
    done = execute(notebook)
    assert "#SBATCH" in done.stdout, done.stderr


@pytest.mark.slow
def test_all_cells_of_the_notebook_run(notebook: Path) -> None:
    done = execute(notebook)
    assert done.returncode == 0, done.stderr
    (run,) = (notebook.parent / "experiments").glob("digits-*")
    assert (run / "result.json").is_file()


def test_notebook_is_stored_without_outputs() -> None:
    assert all(not cell.get("outputs") for cell in CELLS)
