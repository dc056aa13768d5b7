"""Errors in own functions that their text shows are reported with file, line and a correction."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm.cli import main
from tests.toolkit.workloads.custom.bad_input.conftest import ADDED, DATA, STEP, Refused, add, edit


@pytest.mark.parametrize(
    "module, words",
    [
        ("mien.py", ["mine.yaml:2: task.module: mien.py: there is no file mien.py", "as in task: digits.py"]),
        ("mine", ["did you mean mine.py?"]),
        ("my_project.mine", ["mine.yaml:2: ", "install my_project", "PYTHONPATH"]),
    ],
    ids=["a file", "a name without ending", "a module"],
)
def test_missing_code_is_reported_with_advice(refused: Refused, module: str, words: list[str]) -> None:
    edit("mine.yaml", "mine.py", module)
    said = refused("submit", "mine.yaml")
    assert [each for each in words if each not in said] == []


@pytest.mark.parametrize("is_package", [True, False])
def test_relative_import_in_a_file_is_refused(refused: Refused, is_package: bool) -> None:
    add("from .layers import Block")
    Path("src/mine").mkdir(parents=True)
    Path("mine.py").rename("src/mine/digits.py")
    if is_package:
        Path("src/mine/__init__.py").touch()
    edit("mine.yaml", "mine.py", "src/mine/digits.py")
    said = refused("submit", "mine.yaml")
    assert f"digits.py:{ADDED}: " in said
    assert "imports .layers" in said
    assert ("task: mine.digits, with " in said) == is_package


@pytest.mark.parametrize("in_path, is_package", [(True, True), (True, False), (False, True)])
def test_import_from_the_package_around_a_file_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, in_path: bool, is_package: bool
) -> None:
    """The run would import the user's edited files, or fail."""
    _write_package("curves", is_package=is_package)
    if in_path:
        monkeypatch.syspath_prepend(Path("src").absolute())
    assert main(["plan", "mine.yaml"]) == 0
    assert "task: curves.tasks.digits, with " in capsys.readouterr().err


def test_import_from_the_package_around_a_file_is_found_in_files_beside_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _write_package("curves", is_package=True)
    folder = Path("src/curves/tasks")
    (folder / "helper.py").write_text("import curves.models")
    code = (folder / "digits.py").read_text()
    (folder / "digits.py").write_text(code.replace("import curves.models", "import helper"))
    assert main(["plan", "mine.yaml"]) == 0
    assert "task: curves.tasks.digits, with " in capsys.readouterr().err


def test_hint_names_no_module_that_python_cannot_import(capsys: pytest.CaptureFixture[str]) -> None:
    _write_package("curves", is_package=True)
    Path("src/curves/tasks/digits.py").rename("src/curves/tasks/my-digits.py")
    edit("mine.yaml", "digits.py", "my-digits.py")
    assert main(["plan", "mine.yaml"]) == 0
    said = capsys.readouterr().err
    assert ("rename my-digits" in said, "task: curves" in said) == (True, False)


@pytest.mark.parametrize(
    "name, beside", [("curves", "curves.py"), ("curves", "curves/models.py"), ("json", "")]
)
def test_import_of_a_module_named_like_the_folder_of_a_file_is_not_named(
    capsys: pytest.CaptureFixture[str], name: str, beside: str
) -> None:
    """It is beside the file, or installed."""
    _write_package(name, is_package=True)
    if beside:
        found = Path("src", name, "tasks", beside)
        found.parent.mkdir(exist_ok=True)
        found.touch()
    assert main(["plan", "mine.yaml"]) == 0
    assert "keeps no copy" not in capsys.readouterr().err


def _write_package(name: str, *, is_package: bool) -> None:
    """Move the file into a package, from which it imports."""
    add(f"import {name}.models")
    folder = Path("src", name, "tasks")
    folder.mkdir(parents=True)
    for each in (folder, folder.parent) if is_package else ():
        (each / "__init__.py").touch()
    (folder.parent / "models.py").touch()
    Path("mine.py").rename(folder / "digits.py")
    edit("mine.yaml", "mine.py", str(folder / "digits.py"))


@pytest.mark.parametrize(
    "name, line",
    [
        ("toolkit", "from toolkit.layers import Block"),
        ("toolkit", "from toolkit import layers"),
        ("slurm", "import slurm.layers"),
    ],
)
def test_import_from_a_package_named_toolkit_or_slurm_is_refused(
    refused: Refused, name: str, line: str
) -> None:
    Path(name).mkdir()
    Path(name, "layers.py").write_text("Block = None\n")
    add(f"import toolkit\nfrom toolkit.errors import UserError\nfrom stk import Metric\n{line}")
    said = refused("submit", "mine.yaml")
    assert f"imports {name}.layers" in said
    assert f"{name} is a package of slurm-toolkit" in said
    assert f"give your {name} another name" in said


@pytest.mark.parametrize(
    "lines",
    [
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .layers import Block",
        "try:\n    from .layers import Block\nexcept ImportError:\n    Block = None",
        "from contextlib import suppress\nwith suppress(ImportError):\n    from .layers import Block",
        "def unused():\n    from .layers import Block",
    ],
    ids=["for a type checker", "with another import for a file", "with none", "in a function"],
)
def test_optional_relative_import_is_accepted(lines: str) -> None:
    add(lines)
    assert main(["plan", "mine.yaml"]) == 0


@pytest.mark.parametrize(
    "old, new, line, right",
    [
        ("def data(split: str)", "def data()", DATA, "def data(split): return MyDataset(split)"),
        ("def step(model, batch)", "def step(model)", STEP, 'def step(model, batch): return {"loss"'),
        ('{"loss":', '{"los":', STEP, 'def step(model, batch): return {"loss"'),
        ('{"loss":', '{"count": y, "loss":', STEP, "the metric count, a name that metrics.jsonl uses"),
        ("def step(model, batch):", "def step(model, batch)", STEP, "expected ':'"),
        ("def step", "def stap", 0, "def step(model, batch)"),
    ],
    ids=["data without a split", "step without a batch", "no loss", "a name", "no Python", "no step"],
)
def test_invalid_function_is_reported_with_its_line(
    refused: Refused, old: str, new: str, line: int, right: str
) -> None:
    edit("mine.py", old, new)
    said = refused("submit", "mine.yaml")
    assert (f"mine.py:{line}: " if line else "mine.yaml:2: ") in said
    assert right in said


@pytest.mark.parametrize(
    "written, right",
    [
        ("def collate(): ...", "def collate(samples): return torch.stack(samples)"),
        ("def lengths(): ...", "def lengths(split): return"),
        ("def optimizer(): ...", "def optimizer(model, lr"),
        ("def schedule(step): ...", "def schedule(step, total): return"),
        ("def predict(model): ...", "def predict(model, batch): return"),
        ("def predict(model, batch, k): ...", "found predict(…, k), but it is given model and batch only"),
        ("def sample(): ...", "def sample(row): return"),
        ("def sample(row, *, split): ...", "found sample(…, split), but it is given row only"),
        ("def report(run): ...", "def report(run, outputs): return"),
        ('metrics = {"accuracy": "up"}', 'metrics = {"accuracy": "max"'),
        ("from elsewhere import prepare", "def prepare(root: str = 'data')"),
    ],
)
def test_invalid_optional_function_is_reported_with_its_line(
    refused: Refused, written: str, right: str
) -> None:
    add(written)
    said = refused("submit", "mine.yaml")
    assert f"mine.py:{ADDED}: " in said
    assert right in said


def test_unknown_metric_is_reported_with_the_line_of_step(refused: Refused) -> None:
    said = refused("submit", "mine.yaml", "evaluation.metric=accuracy:max")
    assert f"step (mine.py:{STEP}) returns loss" in said
    assert 'return {"loss": …, "accuracy": one_value_per_sample}' in said


@pytest.mark.parametrize("text", ["", "def data(split): ...\n"], ids=["script", "functions"])
@pytest.mark.parametrize(
    "words",
    ["run mine.py", "sweep mine.py model.width=1,2", "check mine.py", "submit train.yaml --then mine.py"],
)
def test_python_file_is_refused_as_an_experiment(refused: Refused, words: str, text: str) -> None:
    Path("mine.py").write_text(text)
    said = refused(*words.split())
    assert "mine.py: this is a Python file, expected a YAML file" in said
    assert "`task: mine.py`" in said
    assert "stk run -- python mine.py" in said


@pytest.mark.parametrize("text, may_be_script", [("epochs = 3\n", True), ("def data(split): ...\n", False)])
def test_script_as_a_task_is_refused_with_a_command(refused: Refused, text: str, may_be_script: bool) -> None:
    Path("mine.py").write_text(text)
    said = refused("run", "mine.yaml")
    assert "has no function step (def step(model, batch): return" in said
    assert ("a script? -- python mine.py)" in said) == may_be_script
