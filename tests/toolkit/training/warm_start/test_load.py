"""A new run starts from the weights of an earlier one."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.toolkit.support.tiny import assert_equal_runs, tiny
from tests.toolkit.support.tiny_training import Attempt, Lab
from toolkit.config import Experiment
from toolkit.config.identity import identity
from toolkit.distributed.process_group import Group
from toolkit.errors import DataError
from toolkit.files import read_json, read_json_lines
from toolkit.precheck.check_inputs import check_inputs
from toolkit.run.run_dir import WEIGHTS, RunDir
from toolkit.system.world import World
from toolkit.task import task_class
from toolkit.training.numerics.rng import seed_everything
from toolkit.training.warm_start.find import find_weights
from toolkit.training.warm_start.load import load_initial_weights

ALONE = Group(World.single(), torch.device("cpu"))
KEY = "train.start_from_checkpoint"


@pytest.fixture(scope="module")
def source(lab: Lab) -> RunDir:
    return lab.train(tiny(lab.folder, "train.epochs=1"), Attempt())


def from_it(lab: Lab, source: RunDir | Path, *overrides: str) -> Experiment:
    path = source.path if isinstance(source, RunDir) else source
    return tiny(lab.folder, "train.epochs=1", "seed=7", f"{KEY}={path}", *overrides)


def begun(experiment: Experiment) -> dict[str, torch.Tensor]:
    """The weights with which a run of it begins."""
    task_class(experiment).prepare(experiment)
    seed_everything(experiment.seed)
    model = task_class(experiment)(experiment).model()
    load_initial_weights(experiment, model, ALONE)
    return dict(model.state_dict())


@pytest.mark.parametrize("of", ["run", "checkpoint", "file"])
def test_a_run_starts_from_the_best_weights_of_another(lab: Lab, source: RunDir, of: str) -> None:
    best = source.checkpoint(read_json(source.result)["best"]["step"])
    named = {"run": source.path, "checkpoint": best, "file": best / WEIGHTS}[of]
    wanted, found = load_file(best / WEIGHTS), begun(from_it(lab, named))
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], value) for name, value in wanted.items())


def test_initial_weights_are_equal_on_1_and_2_processes_and_not_read_on_resume(
    lab: Lab, source: RunDir, tmp_path: Path
) -> None:
    copy = shutil.copytree(source.path, tmp_path / "source")
    experiment = from_it(lab, copy)
    whole = lab.train(experiment, Attempt(size=2))
    assert_equal_runs(lab.train(experiment, Attempt()), whole)
    run = lab.start(experiment)
    lab.go_on(run, Attempt(size=2, stop_after=3), "yielded")
    shutil.rmtree(copy)
    lab.go_on(run, Attempt(size=2), "finished")
    assert_equal_runs(run, whole)
    loaded = [line for line in read_json_lines(run.events) if line["event"] == "weights_loaded"]
    assert [Path(line["file"]).name for line in loaded] == [WEIGHTS]


def test_missing_and_unexpected_weights_are_named(lab: Lab, source: RunDir, tmp_path: Path) -> None:
    weights = load_file(find_weights(KEY, str(source.path)).file)
    name = next(iter(weights))
    save_file({"elsewhere": weights.pop(name), **weights}, tmp_path / WEIGHTS)
    with pytest.raises(DataError) as caught:
        begun(from_it(lab, tmp_path / WEIGHTS))
    assert all(part in str(caught.value) for part in (KEY, str(tmp_path / WEIGHTS), name, "elsewhere"))


def test_damaged_weights_are_refused(lab: Lab, source: RunDir, tmp_path: Path) -> None:
    copy = RunDir(shutil.copytree(source.path, tmp_path / "source", symlinks=True))
    file = find_weights(KEY, str(copy.path)).file
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError, match=rf"{KEY}: .*{WEIGHTS} is damaged"):
        begun(from_it(lab, copy))


def test_an_invalid_source_is_refused_before_the_run(
    lab: Lab, source: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(source.path.parent))
    with pytest.raises(DataError, match=f"did you mean {source.path}"):
        check_inputs(from_it(lab, tmp_path / source.run_id))
    with pytest.raises(DataError, match=rf"{KEY}: .*nowhere does not exist"):
        check_inputs(from_it(lab, tmp_path / "nowhere"))
    with pytest.raises(DataError, match="holds neither a run nor a checkpoint"):
        check_inputs(from_it(lab, tmp_path))
    unfinished = lab.start(tiny(lab.folder, "seed=3"))
    with pytest.raises(DataError, match="has not finished"):
        check_inputs(from_it(lab, unfinished))
    check_inputs(from_it(lab, source))
    # By the time that such a job begins it may have.
    check_inputs(from_it(lab, unfinished, "resources.dependency=afterok:1"))


@pytest.mark.parametrize("result", ["{", "[]", '{"best": {"step": "x"}}', '{"best": ["x"]}', '{"best": {}}'])
def test_a_finished_run_without_a_known_best_step_is_refused(
    lab: Lab, source: RunDir, tmp_path: Path, result: str
) -> None:
    copy = RunDir(shutil.copytree(source.path, tmp_path / "source", symlinks=True))
    copy.result.write_text(result)
    is_own = result == '{"best": {}}'
    why = "its own program trains the model" if is_own else "result.json is damaged"
    with pytest.raises(DataError, match=rf"{KEY}: .*{why}"):
        check_inputs(from_it(lab, copy))


def test_another_source_changes_the_identity(lab: Lab, source: RunDir) -> None:
    one, other = from_it(lab, source), from_it(lab, source.checkpoints / "best")
    none = replace(one, train=replace(one.train, start_from_checkpoint=None))
    assert len({identity(each) for each in (one, other, none)}) == 3
