"""`import stk`: the names that users may rely on."""

from __future__ import annotations

import subprocess
import sys

import pytest

import stk

#: The public names. Change this list only on purpose.
NAMES = [
    "CheckpointError",
    "Metric",
    "Plan",
    "Run",
    "RunCancelled",
    "RunFailed",
    "SchedulerError",
    "Task",
    "UserError",
    "current_run",
    "lightning",
    "load",
    "plan",
    "run",
    "runs",
    "submit",
    "sweep",
    "testing",
    "transformers",
]


def test_public_names_are_the_agreed_ones() -> None:
    assert list(stk._PLACES) == NAMES
    assert set(dir(stk)) <= set(NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("lightning", "transformers")])
def test_each_public_name_is_documented(name: str) -> None:
    assert getattr(stk, name).__doc__


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lightning", "transformers"])
def test_public_names_that_need_a_library_are_documented(name: str) -> None:
    pytest.importorskip(name)
    assert getattr(stk, name).__doc__


def test_unknown_name_is_refused_with_the_public_names() -> None:
    with pytest.raises(AttributeError, match=", ".join(NAMES)):
        getattr(stk, "submitt")  # noqa: B009


def without_lightning(code: str) -> str:
    """Execute code after `import stk` in a process that finds no Lightning; return its output."""
    begin = "import inspect, pydoc, sys; sys.modules['lightning'] = None; import stk; "
    command = [sys.executable, "-c", begin + code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(
    "code, expected",
    [
        ("print('lightning' in dir(stk), 'plan' in dir(stk))", "False True"),
        ("exec('from stk import *'); print('lightning' in vars(), 'plan' in vars())", "False True"),
        ("print('lightning' in dict(inspect.getmembers(stk)))", "False"),
        ("print('submit' in pydoc.render_doc(stk))", "True"),
    ],
)
def test_names_of_stk_can_be_listed_without_a_library(code: str, expected: str) -> None:
    assert without_lightning(code) == expected


def test_name_that_needs_a_library_says_what_to_install() -> None:
    code = "\ntry: stk.lightning\nexcept ModuleNotFoundError as error: print(error)"
    assert "pip install lightning" in without_lightning(code)


def test_importing_stk_imports_no_toolkit_slurm_or_torch() -> None:
    code = "import sys, stk; print([name for name in sys.modules if name in ('toolkit', 'slurm', 'torch')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_names_that_start_runs_import_no_torch() -> None:
    names = ("Plan", "Run", "plan", "run", "runs", "submit", "sweep")
    code = f"import sys, stk; [getattr(stk, name) for name in {names}]; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
