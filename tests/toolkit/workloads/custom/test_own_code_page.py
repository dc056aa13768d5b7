"""The examples of docs/your-code/own-command.md and docs/your-code/own-script.md work as shown."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import stk as stk_module
from tests.docs.readme import blocks
from tests.toolkit.workloads.moved_run import ended as stk
from toolkit.config import load
from toolkit.config.identity import identity
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir, find_runs
from toolkit.workloads.custom.script.current_run import CurrentRun

_DOCS = Path(__file__).parents[4] / "docs" / "your-code"
PAGE = (_DOCS / "own-command.md").read_text(encoding="utf-8")
CALLS = (_DOCS / "own-script.md").read_text(encoding="utf-8")


def block(language: str, page: str = PAGE) -> str:
    """The first code of a page in a language."""
    return blocks(language, page)[0]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with the page's script."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(tmp_path / "experiments"))
    # `python` is the one that runs this test.
    programs = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", os.pathsep.join([programs, os.environ["PATH"]]))
    (tmp_path / "train.py").write_text(block("python"), encoding="utf-8")
    return tmp_path


def test_commands_of_the_page_work(folder: Path) -> None:
    run, submit, sweep = (shlex.split(line)[1:] for line in block("sh").splitlines())
    done = stk(*run)
    assert done.returncode == 0, done.stderr
    assert "done after 20 steps" in done.stdout
    # These are only planned: except for the name of the command, the arguments are those of the page.
    planned = stk("plan", *submit[1:])
    assert "#SBATCH --nodes=2" in planned.stdout, planned.stderr
    swept = stk(sweep[0], "--dry-run", "--cluster", "local", *sweep[1:])
    assert "2 runs" in swept.stdout, swept.stderr
    assert len(list(find_runs(folder / "experiments"))) == 1


def test_the_file_of_the_page_is_an_experiment(folder: Path) -> None:
    file = folder / "train.yaml"
    file.write_text(block("yaml"), encoding="utf-8")
    assert identity(load(file)) != identity(load(file, ["params.steps=10"]))


def test_each_variable_of_the_page_is_set() -> None:
    names = set(re.findall(r"`(STK_[A-Z_]+|MASTER_\w+|\w*RANK|\w*WORLD_SIZE)`", PAGE))
    assert len(names) > 10
    code = f"import os; print('missing', sorted({names!r} - set(os.environ)))"
    done = stk("run", "--", sys.executable, "-c", code)
    assert "missing []" in done.stdout, done.stderr


@pytest.mark.slow
def test_script_of_the_page_that_calls_its_run_works(folder: Path) -> None:
    (folder / "train.py").write_text(block("python", CALLS), encoding="utf-8")
    run, submit, alone = (shlex.split(line) for line in block("sh", CALLS).splitlines())
    done = stk(*run[1:])
    assert done.returncode == 0, done.stderr
    (found,) = find_runs(folder / "experiments")
    assert (read_json(found.result)["step"], found.checkpoint_steps()) == (200, [150, 200])
    assert "#SBATCH --nodes=2" in stk("plan", *submit[2:]).stdout
    subprocess.run(alone, check=True)
    (folder_alone,) = (folder / "experiments" / "alone").glob("[!.]*")
    assert RunDir(folder_alone).checkpoint_steps() == [150, 200]


def test_each_call_in_the_table_exists() -> None:
    names = set(re.findall(r"`(?:with )?run\.(\w+)", CALLS))
    assert {"latest_checkpoint", "log", "should_stop", "checkpoint", "leave"} <= names
    assert names <= set(dir(CurrentRun))


def test_each_call_from_python_is_public() -> None:
    page = (_DOCS / "own-code.md").read_text(encoding="utf-8").partition("## From Python")[2]
    assert set(re.findall(r"\bstk\.(\w+)\(?", page)) <= set(stk_module.__all__)
    called = set(re.findall(r"\b(?:run|call)\.(\w+)\(", page)) - {"current_run"}
    assert {"wait", "metrics", "load_model", "result"} <= called <= set(dir(stk_module.Run))
    compile(block("python", page), "own-code.md", "exec")
