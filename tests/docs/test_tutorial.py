"""docs/your-code/own-code.md, followed from an empty folder."""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from pathlib import Path

import pytest
from sklearn.datasets import load_digits

from tests.docs.readme import ROOT, typed
from toolkit.run.run_dir import RunDir, find_runs

pytestmark = pytest.mark.slow

_PAGE = (ROOT / "docs" / "your-code" / "own-code.md").read_text(encoding="utf-8")


def blocks(language: str, page: str = _PAGE) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def do(commands: str, folder: Path) -> str:
    """Type commands, one after the other; return what they printed."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("STK_", "SLURM_"))}
    environ = {
        **own,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{own['PATH']}",
        "PYTHONPATH": str(ROOT / "tests" / "undrawn"),
        "SLURM_CONF": str(folder / "no-slurm.conf"),
    }
    return typed(commands, folder, environ)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder after the first commands of the page."""
    folder = tmp_path_factory.mktemp("tutorial")
    (folder / "digits.py").write_text(blocks("python")[0], encoding="utf-8")
    (folder / "digits.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    do(blocks("sh")[0], folder)
    return folder


def finished(project: Path, name: str) -> list[RunDir]:
    runs = find_runs(project / "experiments")
    return [run for run in runs if run.run_id.startswith(f"{name}-") and run.result.exists()]


def test_the_first_commands_train_check_sweep_and_submit(project: Path) -> None:
    for run in find_runs(project / "experiments"):
        # Following ends with the run: the last one was submitted to the background.
        do(f"stk logs -f {run.run_id}", project)
    assert len(finished(project, "digits")) == 3


def test_predictor_added_by_the_page_predicts(project: Path) -> None:
    predictions = _PAGE.partition("### Predictions")[2]
    (addition, *_), (commands, *_) = blocks("python", predictions), blocks("sh", predictions)
    with (project / "digits.py").open("a") as file:
        file.write(f"\n\n{addition}")
    do("stk run digits.yaml name=predicting --procs 2", project)
    (run,) = finished(project, "predicting")
    images, labels = load_digits(return_X_y=True)
    rows = (json.dumps({"pixels": list(image)}) for image in images[9::10])
    (project / "rows.jsonl").write_text("\n".join(rows) + "\n")
    printed = do(commands.replace("RUN", run.run_id), project)
    assert len(json.loads(printed.splitlines()[-1])) == 10
    with (project / "predictions.csv").open(newline="") as file:
        scores = [[float(row[f"prediction.{digit}"]) for digit in range(10)] for row in csv.DictReader(file)]
    found = [max(range(10), key=row.__getitem__) for row in scores]
    assert sum(found == labels[9::10]) > 0.9 * len(found)
