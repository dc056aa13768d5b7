"""New code continues a run only if its functions take the values of the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.run.attempts.attempts import start
from tests.toolkit.workloads.custom.edited_code.conftest import Begun, edit
from tests.toolkit.workloads.custom.own_digits import write_digits
from toolkit.config import load, load_resolved
from toolkit.errors import ConfigError
from toolkit.precheck.last_run import other_run_by_code
from toolkit.run.create_run import create_run, run_of
from toolkit.run.kept_code.code_snapshot import LostCode
from toolkit.run.kept_code.edited_code import edit_warnings, edits_since, take_new_code


def test_new_code_that_does_not_take_the_values_of_the_run_is_refused(begun: Begun, tmp_path: Path) -> None:
    """Its own code stays, and the run can continue with it."""
    run, experiment = begun
    run.checkpoint(3).mkdir(parents=True)
    file = tmp_path / "work" / "digits.py"
    text = file.read_text()
    assert "def model(" in text
    file.write_text(text.replace("def model(", "def model(depth: int, "))
    with pytest.raises(ConfigError, match=r"model\.depth"):
        take_new_code(run, experiment, asked=True)
    assert (run.code / "project" / "digits.py").read_text() == text
    file.write_text(text.replace("def model(", "def model(depth: int = 1, "))
    take_new_code(run, experiment, asked=True)
    assert not edits_since(run, experiment)


def test_new_code_of_a_task_with_its_own_optimizer_is_taken(tmp_path: Path) -> None:
    """The config of a run holds the defaults of all keys, which the user's functions need not take."""
    config = write_digits(tmp_path / "work")
    edit(tmp_path, "digits.py", "def optimizer(model, lr=0.1, weight_decay: float = 0.5): ...\n")
    edit(tmp_path, "digits.py", "def schedule(step, total): return 1.0\n")
    experiment = load(config)
    run = create_run(experiment, tmp_path / "runs")
    edit(tmp_path, "digits.py")
    take_new_code(run, load_resolved(run.config), asked=True)
    assert not edits_since(run, experiment)


@pytest.mark.parametrize(
    "before, after, key",
    [
        ("optimizer(model, lr=0.1)", "optimizer(model, decay, lr=0.1)", "decay"),
        ("optimizer(model, width: int, lr=0.1)", "optimizer(model, lr=0.1)", "width"),
        ("optimizer(model, lr=0.1)", "predict(model, batch)", "optimizer"),
    ],
    ids=["a new parameter", "a removed parameter", "a removed function"],
)
def test_new_code_whose_own_optimizer_does_not_fit_is_refused(
    before: str, after: str, key: str, tmp_path: Path
) -> None:
    config = write_digits(tmp_path / "work")
    file = config.with_name("digits.py")
    text = file.read_text()
    file.write_text(f"{text}\ndef {before}: ...\n")
    experiment = load(config, ["optimizer.width=3"] if "width" in before else [])
    run = create_run(experiment, tmp_path / "runs")
    run.checkpoint(3).mkdir(parents=True)
    file.write_text(f"{text}\ndef {after}: ...\n")
    with pytest.raises(ConfigError, match=key):
        take_new_code(run, load_resolved(run.config), asked=True)


def test_run_that_begins_anew_keeps_its_code_if_the_new_one_does_not_fit(
    begun: Begun, tmp_path: Path
) -> None:
    run, experiment = begun
    file = tmp_path / "work" / "digits.py"
    text = file.read_text()
    file.write_text(text.replace("def model(", "def model(depth: int, "))
    (line,) = edit_warnings(run, experiment, new_code=False)
    assert "its stored code" in line
    take_new_code(run, experiment, asked=False)
    assert (run.code / "project" / "digits.py").read_text() == text
    (run.code / "toolkit" / "__init__.py").unlink()
    (line,) = edit_warnings(run, experiment, new_code=False)
    assert "its stored code" not in line
    with pytest.raises(LostCode):
        take_new_code(run, experiment, asked=False)


def test_parameter_that_makes_another_run_is_named(
    begun: Begun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, experiment = begun
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(run.path.parent))
    start(run, of=0, to=3)
    file = tmp_path / "work" / "digits.py"
    file.write_text(file.read_text().replace("def model(", "def model(depth: int = 1, "))
    edited = load(tmp_path / "work" / "digits.yaml")
    (line,) = other_run_by_code(run_of(edited), edited)
    assert run.run_id in line
    assert "model.depth" in line
    assert "resume" in line
    # Continued with the new code, the earlier run would have the default.
    of_other_value = load(tmp_path / "work" / "digits.yaml", ["model.depth=2"])
    assert "resume" not in other_run_by_code(run_of(of_other_value), of_other_value)[0]
    of_other_seed = load(tmp_path / "work" / "digits.yaml", ["seed=9"])
    assert other_run_by_code(run_of(of_other_seed), of_other_seed) == []
    assert other_run_by_code(run, experiment) == []
