"""docs/your-code/how-to-add-a-task.md: the package that it shows is made of its blocks, and used."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S
from tests.support.registering import ROOT, UNDRAWN, register

_PAGE = (ROOT / "docs" / "your-code" / "how-to-add-a-task.md").read_text(encoding="utf-8")
#: A line that names a file, and the block below it.
_FILES = re.compile(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Reader:
    """The folder of somebody who has followed the page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in _FILES.findall(_PAGE):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        (folder / "stk_line" / "__init__.py").touch()
        register(folder, folder)
        points = ((number % 40 / 20 - 1, 3 * (number % 40 / 20 - 1) + 1) for number in range(120))
        (folder / "points.txt").write_text("".join(f"{x} {y}\n" for x, y in points))

    def python(self, *words: str, code: int = 0) -> str:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("STK_")}
        # The page's package in place of the toy's.
        paths = [str(ROOT), str(self.folder), str(UNDRAWN)]
        environ |= {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
        command = [sys.executable, *words]
        done = subprocess.run(
            command, cwd=self.folder, env=environ, capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    def stk(self, *words: str, code: int = 0) -> str:
        return self.python("-m", "slurm", *words, code=code)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return Reader(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def finished(reader: Reader) -> Reader:
    reader.stk("run", "line.yaml")
    return reader


def test_every_block_of_the_page_is_a_file_of_the_package() -> None:
    assert len(_FILES.findall(_PAGE)) == len(re.findall(r"^```\w", _PAGE, re.MULTILINE))


def test_rule_on_the_page_checks_experiments(reader: Reader) -> None:
    told = reader.stk("plan", "line.yaml", "model.hidden=0", code=2)
    assert "model.dropout" in told


def test_task_on_the_page_trains_and_its_report_shows_metric_and_section(finished: Reader) -> None:
    told = finished.stk("report", "line-")
    assert "Mean distance" in told
    assert "Range" in told


@pytest.mark.slow
def test_command_on_the_page_runs_the_code_that_the_run_has_kept(finished: Reader) -> None:
    assert "/code/stk_line/place.py" in finished.stk("line", "line-")


@pytest.mark.slow
def test_predictor_on_the_page_predicts(finished: Reader) -> None:
    (finished.folder / "rows.jsonl").write_text('{"x": 0.5}\n')
    told = finished.stk("predict", "line-", "rows.jsonl", "--format", "jsonl")
    assert isinstance(json.loads(told.splitlines()[0])["y"], float)


@pytest.mark.slow
def test_task_on_the_page_passes_the_checks(reader: Reader) -> None:
    reader.python("check.py")
