"""Warnings about the code of a task, before its job is submitted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.workloads.custom.own_digits import faults
from toolkit.config import load, load_resolved, to_yaml
from toolkit.registry import task_kinds
from toolkit.workloads.custom.functions.user_code import lacks_predict, prediction_fault


def test_a_folder_that_the_file_reads_beside_itself_is_named_in_a_warning(config: Path) -> None:
    code = config.with_name("digits.py")
    (config.parent / "rows").mkdir()
    code.write_text(f"{code.read_text()}\nROWS = Path(__file__).parent / 'rows' / 'train.csv'\n")
    experiment = load(config)
    (warning,) = task_kinds()[experiment.task.kind].file_warnings(experiment)
    assert "rows" in warning.problem


def _warnings_with(config: Path, code: str, **resources: Any) -> list[str]:
    file = config.with_name("digits.py")
    file.write_text(f"{code}\n{file.read_text()}")
    experiment = load(config)
    experiment = replace(experiment, resources=replace(experiment.resources, **resources))
    found = task_kinds()[experiment.task.kind].file_warnings(experiment)
    return [f"{each.problem} ({each.hint})" for each in found]


@pytest.mark.parametrize(
    "code, named, hint",
    [
        ("import torhc", "digits.py:1 imports torhc", "torch"),
        ("import os, torhc.nn as nn", "digits.py:1 imports torhc", "torch"),
        ("\nfrom helpr import width", "digits.py:2 imports helpr", "helper"),
        ("metrics = {'acuracy': 'max'}", "found acuracy", "accuracy"),
        ("metrics = [Metric('acuracy', 'max')]", "found acuracy", "accuracy"),
    ],
)
def test_missing_module_or_declared_metric_that_step_does_not_return_is_named_in_a_warning(
    config: Path, code: str, named: str, hint: str
) -> None:
    config.with_name("helper.py").touch()
    (warning,) = _warnings_with(config, code)
    assert named in warning
    assert f"did you mean {hint}?" in warning


def test_module_in_the_working_folder_only_is_named_in_a_warning(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beside.py").touch()
    monkeypatch.chdir(tmp_path)
    (warning,) = _warnings_with(config, "import beside")
    assert "digits.py:1 imports beside" in warning


@pytest.mark.parametrize("text", ["def f(:\n", "def model(): ...\n", None])
def test_file_that_is_broken_between_reading_and_checks_is_no_error(config: Path, text: str | None) -> None:
    experiment = load(config)
    code = config.with_name("digits.py")
    code.unlink() if text is None else code.write_text(text)
    assert [*task_kinds()[experiment.task.kind].file_warnings(experiment)] == []


@pytest.mark.parametrize(
    "code",
    [
        "import helper, os.path, numpy, toolkit.task, __future__",
        "from part.inner import thing",
        "try:\n    import torhc\nexcept ImportError:\n    torhc = None",
        "import sys\nsys.path.append('lib')\nimport torhc",
        "import sys as system\nsystem.path.append('lib')\nimport torhc",
        "from sys import path as folders\nfolders.append('lib')\nimport torhc",
        "import with_path, torhc",
        "def later():\n    import torhc",
    ],
)
def test_import_that_may_succeed_is_not_named(config: Path, code: str) -> None:
    config.with_name("helper.py").touch()
    config.with_name("with_path.py").write_text("import sys\nsys.path.append('lib')")
    config.with_name("part").mkdir()
    assert _warnings_with(config, code) == []


@pytest.mark.parametrize(
    "function, expected",
    [
        ("predict(batch, model, k=1)", "predict(model, batch)"),
        ("predict(threshold=0.5, batch=None)", "predict(model, batch)"),
        ("report(outputs, run)", "report(run, outputs)"),
        ("lengths(root='x', split='train')", "lengths(split)"),
    ],
)
def test_function_that_is_called_with_other_arguments_is_named_in_a_warning(
    config: Path, function: str, expected: str
) -> None:
    (warning,) = _warnings_with(config, f"def {function}: ...")
    assert f"digits.py:1: found {function.partition('(')[0]}(" in warning
    assert f"expected {expected}" in warning


def test_order_of_arguments_is_checked_for_new_experiments_only(config: Path, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(to_yaml(load(config)))
    code = config.with_name("digits.py")
    code.write_text(
        f"{code.read_text()}\n\ndef step(batch, model):\n    return {{'loss': 0, 'accuracy': 0}}\n"
    )
    (fault,) = faults(config)
    assert "expected step(model, batch)" in fault
    stored = load_resolved(tmp_path / "config.yaml")
    assert prediction_fault(stored, tmp_path) == lacks_predict(code)


@pytest.mark.parametrize("key", ["metrics.acuracy=max", "titles.acuracy=A", "units.acuracy=share"])
def test_key_of_a_metric_that_step_does_not_return_is_named_in_a_warning(config: Path, key: str) -> None:
    experiment = load(config, ["task={kind: three_functions, module: digits.py}", f"task.{key}"])
    (warning,) = task_kinds()[experiment.task.kind].file_warnings(experiment)
    assert warning.key == ("task", key.partition(".")[0], "acuracy")


def test_goals_of_metrics_that_are_known_at_run_time_only_are_not_named(config: Path) -> None:
    code = config.with_name("digits.py")
    code.write_text(code.read_text() + "\n\ndef step(model, batch):\n    return made(model, batch)\n")
    assert _warnings_with(config, "metrics = {'acuracy': 'max'}") == []


@pytest.mark.parametrize("resources", [{"setup": ("module load x",)}, {"environment": {"PYTHONPATH": "/x"}}])
def test_missing_module_is_not_named_if_the_job_has_another_environment(
    config: Path, resources: dict[str, Any]
) -> None:
    assert _warnings_with(config, "import torhc", **resources) == []
