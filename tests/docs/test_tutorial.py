"""docs/your-code/own-code.md, followed from an empty folder."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest
from sklearn.datasets import load_digits

from tests.docs.readme import ROOT, blocks, typed, without_slurm
from tests.support.registering import UNDRAWN
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir, find_runs

pytestmark = pytest.mark.slow

_PAGE = (ROOT / "docs" / "your-code" / "own-code.md").read_text(encoding="utf-8")
_PREDICTIONS = _PAGE.partition("### Predictions")[2]


def do(commands: str, folder: Path) -> str:
    """Type commands, one after the other; return what they printed."""
    programs = Path(sys.executable).parent
    return typed(commands, folder, without_slurm(folder, programs, PYTHONPATH=str(UNDRAWN)))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder after the first commands of the page, with the functions that it adds for predictions."""
    folder = tmp_path_factory.mktemp("tutorial")
    task = f"{blocks('python', _PAGE)[0]}\n\n{blocks('python', _PREDICTIONS)[0]}"
    (folder / "digits.py").write_text(task, encoding="utf-8")
    (folder / "digits.yaml").write_text(blocks("yaml", _PAGE)[0], encoding="utf-8")
    do(blocks("sh", _PAGE)[0], folder)
    return folder


@pytest.fixture(scope="module")
def run(project: Path) -> RunDir:
    """The run that `stk run` has trained, the only one of two processes."""
    (found,) = (run for run in find_runs(project / "experiments") if [*run.logs.glob("*.rank_00001.log")])
    return found


def test_the_first_commands_train_check_sweep_and_submit(project: Path) -> None:
    runs = list(find_runs(project / "experiments"))
    for run in runs:
        if not run.result.exists():
            # Following ends with the run: the last one was submitted to the background.
            do(f"stk logs -f {run.run_id}", project)
    assert len(runs) == 3
    assert all(run.result.exists() for run in runs)


def test_the_digits_are_learnt_without_a_warning(run: RunDir) -> None:
    assert read_json(run.result)["metrics"]["test"]["accuracy"] > 0.9
    (log,) = run.logs.glob("*.rank_00001.log")
    assert "Warning" not in log.read_text()


def test_predictor_added_by_the_page_predicts(project: Path, run: RunDir) -> None:
    commands = blocks("sh", _PREDICTIONS)[0]
    images, labels = load_digits(return_X_y=True)
    rows = (json.dumps({"pixels": list(image)}) for image in images[9::10])
    (project / "rows.jsonl").write_text("\n".join(rows) + "\n")
    printed = do(commands.replace("RUN", run.run_id), project)
    assert len(json.loads(printed.splitlines()[-1])) == 10
    with (project / "predictions.csv").open(newline="") as file:
        scores = [[float(row[f"prediction.{digit}"]) for digit in range(10)] for row in csv.DictReader(file)]
    found = [max(range(10), key=row.__getitem__) for row in scores]
    assert sum(found == labels[9::10]) > 0.9 * len(found)
