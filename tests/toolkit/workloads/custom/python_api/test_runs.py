"""Runs of an experiment file and of commands, from Python: results, metrics, model, predictions."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import stk
from tests.toolkit.workloads.custom.own_digits import DIGITS, write_digits

PREDICT = """

def predict(model, batch):
    return model(batch[0] if isinstance(batch, list) else batch).softmax(1)
"""


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stk.Run]:
    """A run that was trained by `stk.run`."""
    folder = tmp_path_factory.mktemp("digits") / "project"
    with pytest.MonkeyPatch.context() as patch:
        experiment = write_digits(folder)
        (folder / "digits.py").write_text(DIGITS + PREDICT)
        patch.chdir(folder)
        patch.setenv("STK_EXPERIMENT_DIR", str(folder / "experiments"))
        yield stk.run(experiment, {"train.epochs": 1})


def test_finished_run_has_a_status_and_a_result(digits: stk.Run) -> None:
    found = digits.status()
    assert found["state"] == "finished", found
    assert digits.result() == json.loads((digits.folder / "result.json").read_text())
    assert repr(digits) == f"<stk.Run {digits.id}: finished, step {found['step']} of {found['step']}>"


def test_run_is_found_by_id_folder_name_and_pattern(digits: stk.Run) -> None:
    assert stk.runs("digits-*") == [digits]
    assert stk.runs("nothing-*") == []
    assert stk.Run(digits.id) == stk.Run(digits.folder) == stk.Run("digits") == digits
    with pytest.raises(stk.UserError, match="no run 'digitz'"):
        stk.Run("digitz")


def test_metrics_are_a_list_or_a_data_frame_if_pandas_is_installed(
    digits: stk.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    lines = digits.metrics()
    assert {"train", "validation"} <= {line["split"] for line in lines}
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=lambda rows: ("a table", rows)))
    assert digits.metrics() == ("a table", lines)


def test_predictions_are_those_of_the_test_set(digits: stk.Run) -> None:
    from sklearn.datasets import load_digits

    pixels = (load_digits(return_X_y=True)[0][9::10][:120] / 16).tolist()
    told = (digits.folder / "artifacts" / "test_predictions.jsonl").read_text().splitlines()
    predicted = digits.predict(iter(pixels), batch_size=50)
    first = next(predicted)
    assert [first, *predicted] == [pytest.approx(json.loads(line), abs=1e-5) for line in told]
    assert not digits.load_model().training


@pytest.mark.parametrize(
    "samples, words", [("rows.jsonl", "stk predict"), ([[1.0] * 64, object()], "samples:2")]
)
def test_invalid_samples_are_refused(digits: stk.Run, samples: object, words: str) -> None:
    with pytest.raises(stk.UserError, match=words):
        list(digits.predict(samples))


def test_run_of_a_command_has_its_logged_metrics_and_no_model(folder: Path) -> None:
    run = stk.run([sys.executable, "-c", ""], overrides={"name": "none"})
    logged = [(1, {"loss": 1.0, "lr": 0.1}), (2, {"loss": 2.0}), (1, {"loss": 3.0})]
    lines = [{"step": step, "split": "train", **metrics} for step, metrics in logged]
    (run.folder / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    # Lines of one step are joined, at the place of the last.
    assert run.metrics() == [lines[1], {**lines[0], "loss": 3.0}]
    with pytest.raises(stk.UserError, match="predicts nothing: a command trains no model that is known here"):
        run.predict([])
    with pytest.raises(stk.UserError, match=r"no known model$"):
        run.load_model()


def test_a_sweep_gives_a_run_for_each_combination(folder: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit(sys.argv[-1] == '2')"]
    runs = stk.sweep(command, {"params.x": [1, 2]}, cluster="local")
    assert [run.status()["state"] for run in runs] == ["finished", "failed"]
    assert stk.runs() == sorted(runs, key=lambda run: run.id)
