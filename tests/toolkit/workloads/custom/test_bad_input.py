"""Errors in a user's files are reported with file, line and a correction; nothing is left behind."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

import stk
from slurm.cli import main
from tests.toolkit.workloads.custom.own_digits import POINTS
from tests.toolkit.workloads.moved_run import ended
from toolkit.config import load
from toolkit.errors import UserError
from toolkit.exit_codes import ExitCode
from toolkit.files import read_json, write_json
from toolkit.run.create_run import create_run
from toolkit.testing.contract import evaluated, new_model, open_task

_YAML = "name: mine\ntask: mine.py\ntrain: {epochs: 1, batch_size: 8}\n"
_COMMAND = "name: mine\ntask: {kind: command, run: [python, train.py]}\n"
MODEL, DATA, STEP, ADDED = 6, 10, 15, 20

Refused = Callable[..., str]


@pytest.fixture(autouse=True)
def here(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working folder has a good file, a good command and an experiment of each."""
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(empty_folder / "experiments"))
    for name, text in {"mine.py": POINTS, "mine.yaml": _YAML, "train.py": "", "train.yaml": _COMMAND}.items():
        (empty_folder / name).write_text(text)
    (empty_folder / "program").touch()


@pytest.fixture
def refused(capfd: pytest.CaptureFixture[str]) -> Refused:
    """The error of a command that is refused before it writes any file."""

    def error(*words: str) -> str:
        before = sorted(Path().rglob("*"))
        assert main([*words]) == ExitCode.WRONG_INPUT
        assert sorted(Path().rglob("*")) == before
        return capfd.readouterr().err

    return error


def _edit(name: str, old: str, new: str) -> None:
    path = Path(name)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def _add(text: str) -> None:
    path = Path("mine.py")
    path.write_text(f"{path.read_text()}\n\n{text}\n")


# -- functions: errors found in their text, before anything is started


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
    _edit("mine.yaml", "mine.py", module)
    said = refused("submit", "mine.yaml")
    assert [each for each in words if each not in said] == []


@pytest.mark.parametrize("is_package", [True, False])
def test_relative_import_in_a_file_is_refused(refused: Refused, is_package: bool) -> None:
    _add("from .layers import Block")
    Path("src/mine").mkdir(parents=True)
    Path("mine.py").rename("src/mine/digits.py")
    if is_package:
        Path("src/mine/__init__.py").touch()
    _edit("mine.yaml", "mine.py", "src/mine/digits.py")
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
    _edit("mine.yaml", "digits.py", "my-digits.py")
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
    _add(f"import {name}.models")
    folder = Path("src", name, "tasks")
    folder.mkdir(parents=True)
    for each in (folder, folder.parent) if is_package else ():
        (each / "__init__.py").touch()
    (folder.parent / "models.py").touch()
    Path("mine.py").rename(folder / "digits.py")
    _edit("mine.yaml", "mine.py", str(folder / "digits.py"))


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
    _add(f"import toolkit\nfrom toolkit.errors import UserError\nfrom stk import Metric\n{line}")
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
    _add(lines)
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
    _edit("mine.py", old, new)
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
    _add(written)
    said = refused("submit", "mine.yaml")
    assert f"mine.py:{ADDED}: " in said
    assert right in said


def test_unknown_metric_is_reported_with_the_line_of_step(refused: Refused) -> None:
    said = refused("submit", "mine.yaml", "evaluation.metric=accuracy:max")
    assert f"step (mine.py:{STEP}) returns loss" in said
    assert 'return {"loss": …, "accuracy": one_value_per_sample}' in said


@pytest.mark.parametrize("command", ["run", "submit", "sweep"])
def test_python_file_is_refused_as_an_experiment(refused: Refused, command: str) -> None:
    said = refused(command, "mine.py", *(["model.width=1,2"] if command == "sweep" else []))
    assert "mine.py: this is a Python file, expected a YAML file" in said
    assert "`task: mine.py`" in said


@pytest.mark.parametrize(
    "text", ["", "step = 0\nfor step in range(3): ...\n", "class A:\n    def step(self): ...\n"]
)
@pytest.mark.parametrize("words", ["prepare train.py", "check train.py", "submit train.yaml --then train.py"])
def test_script_is_refused_as_an_experiment_with_a_command(refused: Refused, words: str, text: str) -> None:
    Path("train.py").write_text(text)
    said = refused(*words.split())
    assert "train.py: this is a Python file, expected a YAML file" in said
    assert "-- python train.py)" in said


@pytest.mark.parametrize(
    "text",
    [
        "def step(",
        "def data(split): ...\n",
        "from elsewhere import step\n",
        "try:\n    import fast\nexcept ImportError:\n    def step(model, batch): ...\n",
        "class A:\n    def model(self): ...\n    def data(self, split): ...\n    def step(self, m, b): ...\n",
    ],
)
def test_python_file_that_is_invalid_or_has_functions_of_a_task_is_no_script(
    refused: Refused, text: str
) -> None:
    Path("mine.py").write_text(text)
    said = refused("run", "mine.py")
    assert "`task: mine.py`" in said
    assert "-- python" not in said


@pytest.mark.parametrize("text, is_script", [("epochs = 3\n", True), ("def data(split): ...\n", False)])
def test_script_as_a_task_is_refused_with_a_command(refused: Refused, text: str, is_script: bool) -> None:
    Path("mine.py").write_text(text)
    said = refused("run", "mine.yaml")
    assert "has no function step (def step(model, batch): return" in said
    assert ("a script? -- python mine.py)" in said) == is_script


# -- functions: errors that only a job can find


def _start() -> None:
    """Use task and model once for each purpose, as a job does at its start."""
    task = open_task(load(Path("mine.yaml")))
    model = new_model(task)
    task.loss(model, task.collate("train", np.arange(3), torch.device("cpu")))
    evaluated(task, model, "validation")


def _said_at_start() -> str:
    with pytest.raises(UserError) as caught:
        _start()
    assert caught.value.exit_code == ExitCode.WRONG_INPUT
    return str(caught.value)


_SET = "TensorDataset(x, (x[:, 0] > 0).long())"
_SHRINKING = "    with torch.no_grad():\n        model[0].weight.mul_(0.9)\n    x, y = batch"
_FIRST = "nn.Linear(4, width),"
_LOSS = 'nn.functional.cross_entropy(model(x), y, reduction="none")'
_END = f"{_LOSS}}}\n"
_LENGTHS = f"{_END}\n\ndef lengths(split):\n    return"
_PREDICT = f"{_END}\n\ndef predict(model, batch):\n    return"


@pytest.mark.parametrize(
    "old, new, line, right",
    [
        ("import torch\n", "import torch, nothing_there\n", 1, "nothing_there"),
        ("import torch\n", "import torch, sys; sys.exit('needs a GPU')\n", 1, "SystemExit: needs a GPU"),
        ("nn.Sequential(", "(", MODEL, "def model(hidden: int = 64): return MyModel(hidden)"),
        (_FIRST, "nn.Embedding(4, width, sparse=True),", MODEL, "leave out sparse=True"),
        (_FIRST, "nn.LazyLinear(width),", MODEL, "call the new model on an example"),
        (_FIRST, f"{_FIRST} nn.BatchNorm1d(width),", MODEL, "BatchNorm1d"),
        (_FIRST, f"nn.utils.parametrizations.spectral_norm({_FIRST[:-1]}),", MODEL, "0.parametrizations"),
        ("    x, y = batch", _SHRINKING, MODEL, "step changes 0.weight"),
        (_SET, f"iter({_SET})", DATA, "def data(split): return MyDataset(split)"),
        (_SET, f"torch.utils.data.DataLoader({_SET})", DATA, "def data(split): return MyDataset(split)"),
        (_SET, f"None if split == 'validation' else {_SET}", DATA, "only test may be None"),
        (_SET, "{'a': x[0]}", DATA, "whose keys are not 0 to 0"),
        (_SET, "[]", DATA, "without samples"),
        (_SET, "[torch.ones(n, 2) for n in range(1, 41)]", DATA, "collate(samples)"),
        (', reduction="none"', "", STEP, 'reduction="none" makes one value per sample'),
        (_LOSS, "3.0", STEP, 'reduction="none" makes one value per sample'),
        (_LOSS, "torch.zeros(len(x))", STEP, "compute it from model("),
        ('{"loss":', '0 or {"los":', STEP, 'def step(model, batch): return {"loss"'),
        (f"{_LOSS}}}", f'{_LOSS}, "accuracy": 1.0}}', STEP, '"accuracy": scores.argmax(1) == labels'),
        (f"{_LOSS}}}", f'{_LOSS}, "accuracy": None}}', STEP, '"accuracy": scores.argmax(1) == labels'),
        (f"{_LOSS}}}", f'{_LOSS}, "weights": [1.0]}}', STEP, "expected a tensor"),
        ('{"loss":', '{} or {"lr": y, "loss":', STEP, "the metric lr, a name that metrics.jsonl uses"),
        (_END, f"{_LENGTHS} [1]\n", ADDED, "def lengths(split): return"),
        (_END, f"{_LENGTHS} None and 1 or 'abc'\n", ADDED, "def lengths(split): return"),
        (_END, f"{_PREDICT} 3\n", ADDED, "(model, batch): return one_value"),
        (_END, f"{_PREDICT} torch.zeros(2)\n", ADDED, "(model, batch): return one_value"),
    ],
    ids=[
        "an import", "an exit", "no model", "sparse gradients", "a lazy layer", "a batch norm",
        "a buffer that changes", "a weight that changes", "no length", "a loader", "no validation",
        "keys", "no samples", "samples of unequal shapes",
        "a mean for a loss", "a number for a loss", "a loss without the model", "no loss",
        "a mean for a metric", "nothing for a metric", "a list of weights", "a name",
        "too few lengths", "a text for lengths", "a number for predictions", "too few predictions",
    ],
)  # fmt: skip
def test_error_at_job_start_is_reported_with_its_line(old: str, new: str, line: int, right: str) -> None:
    _edit("mine.py", old, new)
    said = _said_at_start()
    assert f"mine.py:{line}: " in said
    assert right in said


def test_job_with_an_invalid_step_exits_with_wrong_input() -> None:
    _edit("mine.py", _LOSS, "3.0")
    done = ended("run", "mine.yaml")
    assert done.returncode == ExitCode.WRONG_INPUT
    assert f"mine.py:{STEP}: the loss is of type float" in done.stderr
    assert "Traceback" not in done.stderr


def test_fresh_start_with_an_error_puts_the_finished_run_back() -> None:
    run = create_run(load(Path("mine.yaml")), Path("experiments").absolute())
    write_json(run.result, {"step": 5})
    _edit("mine.py", _SET, "3")
    assert ended("run", "mine.yaml", "--fresh").returncode == ExitCode.WRONG_INPUT
    assert read_json(run.result) == {"step": 5}


# -- commands


@pytest.mark.parametrize(
    "old, new, key, right",
    [
        ("train.py", "trian.py", "train.yaml:2: task.run.1", "run: [python, trian.py]"),
        ("[python, train.py]", "[train.py]", "train.yaml:2: task.run.0", "run: [python, train.py]"),
        ("[python, train.py]", "[python train.py]", "train.yaml:2: task.run.0", "run: [python, train.py]"),
        ("[python, train.py]", "[./go.sh]", "train.yaml:2: task.run.0", "run: [bash, go.sh]"),
        ("[python, train.py]", "[bash, go.sh]", "train.yaml:2: task.run.1", "run: [bash, go.sh]"),
        ("train.py]", "../x.py]", "train.yaml:2: task.run.1", "is outside of"),
        ("[python, train.py]", "[]", "train.yaml:2: task.run", "run: [python, train.py]"),
        ("train.py]", "train.py], launch: every", "train.yaml:2: task.launch", "each, node"),
        ("py]}", "py]}\nparams: {a b: 1}", "train.yaml:3: params.a b", "lr: 0.001"),
        ("py]}", "py]}\nparams: [1]", "train.yaml:3: params", "mapping"),
        ("py]}", "py]}\ninputs: [nowhere]", "train.yaml:3: inputs.0", "there is no"),
        ("py]}", "py]}\ncode: [nowhere]", "train.yaml:3: code.0", "there is no"),
        ("py]}", "py]}\nmodel: {x: 1}", "train.yaml:3: model", "no such key"),
        ("run: [python, train.py]", "launch: each", "train.yaml:2: task.run", "is missing"),
        ("py]}", "py]}\nparams: {a: {b: 1}}", "train.yaml:3: params.a", ""),
        ("py]}", "py]}\ncode: [/]", "train.yaml:3: code.0", ""),
    ],
)
def test_invalid_experiment_of_a_command_is_refused_with_its_key(
    refused: Refused, old: str, new: str, key: str, right: str
) -> None:
    _edit("train.yaml", old, new)
    said = refused("submit", "train.yaml", "--cluster", "local")
    assert f"{key}: " in said
    assert right in said


@pytest.mark.parametrize(
    "words, right",
    [
        (["--"], "stk submit -- python train.py"),
        (["--", "python", "trian.py"], "there is no"),
        (["--", "train.py"], "run: [python, train.py]"),
        (["--", "./train.py"], "./train.py is not executable (python ./train.py, or chmod +x ./train.py)"),
        (["--", "./program"], "chmod +x ./program"),
        (["--", "./"], "./ is a folder"),
        (["--nodes", "two", "--", "python", "train.py"], "resources.nodes"),
    ],
)
def test_invalid_command_line_is_refused(refused: Refused, words: list[str], right: str) -> None:
    assert right in refused("submit", "--cluster", "local", *words)


def test_fault_of_a_command_is_in_the_command_line_and_in_no_file(refused: Refused) -> None:
    said = refused("submit", "--cluster", "local", "--", "train.py")
    assert "command line: task.run.0: " in said
    assert ".yaml" not in said


def test_fault_of_a_command_in_python_is_not_in_the_command_line() -> None:
    with pytest.raises(stk.UserError) as raised:
        stk.submit(["train.py"], cluster="local")
    assert "task.run.0: " in str(raised.value)
    assert "command line" not in str(raised.value)


@pytest.mark.parametrize(
    "word, words",
    [
        ("python -m http.server --bind 'a, b'", "[python, -m, http.server, --bind, 'a, b']"),
        ("python train.py --epochs one", "[python, train.py, --epochs, one]"),
        ("train.py --epochs one", "[python, train.py, --epochs, one]"),
        ("./program --epochs one", "[./program, --epochs, one]"),
        (f"sh {'a' * 300}", f"[sh, {'a' * 300}]"),
    ],
)
@pytest.mark.parametrize("command", ["run", "submit", "sweep params.lr=1,2"])
def test_command_in_one_word_is_refused_with_its_words(
    refused: Refused, command: str, word: str, words: str
) -> None:
    said = refused(*command.split(), "--", word)
    right = shlex.join(yaml.safe_load(words))
    assert f"(run: {words}, or -- {right})" in said
    assert "Warnings" not in said


def test_program_with_a_space_in_its_name_is_accepted() -> None:
    Path("python train").touch(0o700)
    assert main(["plan", "--", "./python train"]) == 0


def test_script_that_the_setup_may_make_executable_is_accepted() -> None:
    assert main(["plan", "resources.setup=[chmod +x program]", "--", "./program"]) == 0


@pytest.mark.parametrize("words", ["./train.py", "bash ./program", "env ./program", "$HOME/program"])
def test_executable_script_and_one_behind_another_program_are_accepted(words: str) -> None:
    Path("train.py").chmod(0o700)
    assert main(["plan", "--", *words.split()]) == 0


@pytest.mark.parametrize("program, is_named", [("pyton", True), ("sh", False), ("/opt/of/the/hosts", False)])
def test_program_that_is_missing_here_is_named_but_not_refused(
    capfd: pytest.CaptureFixture[str], program: str, is_named: bool
) -> None:
    assert main(["plan", "--", program, "train.py"]) == 0
    assert (f"there is no program {program}" in capfd.readouterr().err) == is_named


@pytest.mark.parametrize(
    "words, told",
    [
        (["train.yaml", "--evaluate"], "only this program can score it"),
        (["mine.yaml", "--evaluate", "mine.py"], "cannot be scored on a file"),
    ],
)
def test_evaluation_that_can_never_work_is_refused(refused: Refused, words: list[str], told: str) -> None:
    assert told in refused("submit", *words)
