"""Weights that do not fit the model are refused before the run is submitted."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from tests.toolkit.support.tiny import prepared, tiny
from tests.toolkit.support.tiny_training import Attempt, Lab
from toolkit.checkpoint.loading.shapes import misfit, read_shapes
from toolkit.config import Experiment, load
from toolkit.data.prepared.lookup import find_prepared_set
from toolkit.errors import DataError
from toolkit.files import append_json_line, read_json
from toolkit.precheck.changes import change_warnings
from toolkit.precheck.check_inputs import check_inputs, input_violations
from toolkit.precheck.violation_messages import raise_violations
from toolkit.precheck.warm_start import check_shapes
from toolkit.run.run_dir import WEIGHTS, RunDir

KEY = "train.start_from_checkpoint"


@pytest.fixture(scope="module")
def source(lab: Lab) -> RunDir:
    return lab.train(tiny(lab.folder, "train.epochs=1"), Attempt())


def refusal(experiment: Experiment, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        raise_violations(input_violations(experiment, **options), None)
    return str(caught.value)


def of_run(source: RunDir, what: str) -> Path:
    """A run, its best checkpoint, or the weights in that."""
    best = source.checkpoint(read_json(source.result)["best"]["step"])
    return {"run": source.path, "checkpoint": best, "file": best / WEIGHTS}[what]


def test_weights_of_an_equal_model_pass(lab: Lab, source: RunDir) -> None:
    for what in ("run", "checkpoint", "file"):
        check_inputs(tiny(lab.folder, f"{KEY}={of_run(source, what)}", "model.dropout=0.7", "seed=3"))


def tiny_points(folder: Path, *overrides: str) -> Experiment:
    """An experiment of another task."""
    (folder / "points.txt").write_text("".join(f"{x} {2 * x}\n" for x in range(40)))
    config = folder / "points.yaml"
    config.write_text(
        "name: points\ntask: {kind: toy_points}\nmodel: {kind: line}\n"
        f"data: {{path: {folder}/points.txt, prepared_dir: {folder}/prepared}}\n"
    )
    return load(config, overrides)


@pytest.mark.parametrize("what", ["run", "checkpoint", "file"])
def test_weights_of_another_task_are_refused(tmp_path: Path, source: RunDir, what: str) -> None:
    told = refusal(tiny_points(tmp_path, f"{KEY}={of_run(source, what)}"))
    assert all(part in told for part in (KEY, str(of_run(source, what)), "convolutions", "line"))


@pytest.mark.parametrize("override", ["model.embedding_dim=9", "model.filters=7", "model.kernels=[2]"])
def test_weights_of_another_size_are_refused(lab: Lab, source: RunDir, override: str) -> None:
    key, _, value = override.partition("=")
    told = refusal(tiny(lab.folder, f"{KEY}={source.path}", override))
    assert all(part in told for part in (KEY, key, value.strip("[]")))


@pytest.mark.parametrize(
    "override, words",
    [
        ("model.filters=97", ("model.filters", "97")),
        ("data.labels=[good, bad, x1, x2, x3, x4, x5]", ("7 labels",)),
    ],
)
def test_a_single_file_of_another_size_is_refused(
    lab: Lab, source: RunDir, tmp_path: Path, override: str, words: tuple[str, ...]
) -> None:
    file = shutil.copy(of_run(source, "file"), tmp_path / WEIGHTS)
    check_inputs(tiny(lab.folder, f"{KEY}={file}"))
    told = refusal(tiny(lab.folder, f"{KEY}={file}", override))
    assert all(part in told for part in (str(file), *words))


def test_a_single_file_for_another_vocabulary_is_refused_after_preparation(
    lab: Lab, source: RunDir, tmp_path: Path
) -> None:
    experiment = tiny(tmp_path, f"{KEY}={of_run(source, 'file')}", "data.min_count=3")
    check_inputs(experiment)
    assert "tokens" in refusal(prepared(experiment))


def other_file(file: Path, weights: dict[str, torch.Tensor]) -> Path:
    save_file(weights, file)
    return file


def test_a_single_file_is_compared_by_tensor_names_and_shapes(
    lab: Lab, source: RunDir, tmp_path: Path
) -> None:
    """The sizes in the experiment agree, so only a comparison of the tensors finds the difference."""
    weights = load_file(of_run(source, "file"))
    bias = weights.pop("convolutions.0.bias")
    weights |= {"other.bias": bias, "convolutions.1.bias": torch.zeros(9)}
    experiment = prepared(tiny(lab.folder, f"{KEY}={other_file(tmp_path / WEIGHTS, weights)}"))
    check_inputs(experiment)
    (found,) = check_shapes(experiment)
    assert found.key == tuple(KEY.split("."))
    shapes = ("convolutions.1.bias [9], expected [6]", "convolutions.0.bias [6]", "other.bias [6]")
    for part in (str(tmp_path), *shapes):
        assert part in found.problem
    assert found.hint


@pytest.mark.parametrize("case", ["no weights", "data that are not prepared"])
def test_no_process_is_started_without_weights_or_prepared_data(
    case: str, lab: Lab, source: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, overrides = (lab.folder, ()) if case == "no weights" else (tmp_path, (f"{KEY}={source.path}",))
    experiment = tiny(folder, *overrides)
    monkeypatch.setattr("subprocess.Popen", None)
    assert list(check_shapes(experiment)) == []


@pytest.mark.slow
def test_equal_names_and_shapes_pass_and_runs_with_the_same_model_start_one_process(
    lab: Lab, source: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    begins = (f"{KEY}={source.path}", "model.dropout=0.25")
    assert list(check_shapes(prepared(tiny(lab.folder, *begins)))) == []
    monkeypatch.setattr("subprocess.Popen", None)
    for what in ("run", "checkpoint", "file"):
        others = (f"{KEY}={of_run(source, what)}", "model.dropout=0.25", "train.epochs=3", "seed=4")
        assert list(check_shapes(tiny(lab.folder, *others))) == []


def test_a_model_that_cannot_be_built_is_not_reported_before_the_run(tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("no numbers\n")
    file = other_file(tmp_path / WEIGHTS, {"a": torch.zeros(2)})
    experiment = prepared(tiny(tmp_path, f"{KEY}={file}", f"model.vectors={vectors}", "model.filters=2"))
    assert find_prepared_set(experiment.data) is not None
    assert list(check_shapes(experiment)) == []


def test_a_tied_tensor_may_be_stored_under_any_one_of_its_names() -> None:
    tied = [(["a", "b"], (2, 3))]
    assert misfit({"b": (2, 3)}, tied) == misfit({"a": (2, 3)}, tied) == ""
    assert "a = b" in misfit({"a": (2, 3), "b": (2, 3)}, tied)
    assert "a" in misfit({}, tied)
    assert "[2, 4]" in misfit({"b": (2, 4)}, tied)


def test_weights_of_a_planned_run_are_checked_against_its_experiment(lab: Lab, tmp_path: Path) -> None:
    folder = tmp_path / "coming"
    experiment = tiny(lab.folder, f"{KEY}={folder}")
    assert not list(input_violations(experiment, coming={folder: tiny(lab.folder)}))
    assert "model.filters" in refusal(experiment, coming={folder: tiny(lab.folder, "model.filters=9")})


@given(st.binary(max_size=40))
def test_a_file_that_is_not_safetensors_is_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.safetensors"
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"any\.safetensors"):
        read_shapes(file)


def test_initial_weights_that_were_replaced_since_the_run_began_are_named(
    lab: Lab, source: RunDir, tmp_path: Path
) -> None:
    file = Path(shutil.copy(of_run(source, "file"), tmp_path))
    os.utime(file, (1500, 1500))
    experiment = tiny(lab.folder, f"{KEY}={file}", "seed=9")
    run = lab.start(experiment)
    append_json_line(run.attempts, {"attempt": 1, "time_start": 1000.0})
    # Nothing was trained from the earlier ones.
    assert change_warnings(run, experiment, new_code=False) == []
    run.result.write_text("{}")
    (warning,) = change_warnings(run, experiment, new_code=False)
    assert f"{KEY}: {file} was modified on" in warning
    append_json_line(run.attempts, {"attempt": 2, "time_start": 2000.0, "resumed": False})
    assert change_warnings(run, experiment, new_code=False) == []
    file.unlink()
    assert change_warnings(run, experiment, new_code=False) == []
