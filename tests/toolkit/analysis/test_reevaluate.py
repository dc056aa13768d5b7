"""The best weights of a finished run are scored again, on its own data and on other files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stk_toy.texts.files import predictions

from tests.toolkit.support.ranks import in_ranks
from tests.toolkit.support.rescoring import ask
from tests.toolkit.support.tiny import SIZES, tiny
from tests.toolkit.support.tiny_training import Attempt, Lab
from toolkit.analysis.reevaluate import Request, rescore
from toolkit.config import Experiment, load_resolved
from toolkit.errors import CheckpointError, DataError, UserError
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World

pytestmark = pytest.mark.usefixtures("threads_restored")

Make = Callable[..., Experiment]


@pytest.fixture(scope="module")
def make() -> Make:
    """Makes a small experiment with its data in a folder."""
    return tiny


@pytest.fixture(scope="module")
def trained(make: Make, tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """A finished run with the experiment's own kind of tokens."""
    lab = Lab(tmp_path_factory.mktemp("lab"))
    return lab.train(make(lab.folder, "train.reduction=exact"), Attempt())


@pytest.fixture
def run(trained: RunDir, tmp_path: Path) -> RunDir:
    """A copy of the trained run without evaluations, which a test may change."""
    copy = RunDir(tmp_path / trained.run_id)
    shutil.copytree(trained.path, copy.path, symlinks=True)
    shutil.rmtree(copy.evaluation("any").path.parent, ignore_errors=True)
    return copy


def ask_as_rank(world: World, path: Path, meeting: Path) -> dict[str, Any]:
    return rescore(RunDir(path), world, Request(meeting=str(meeting)), lambda what, done, total: None)


def write(folder: Path, *rows: str, name: str = "other.tsv") -> str:
    path = folder / name
    path.write_text("\n".join(["text\tlabel", *rows]) + "\n", encoding="utf-8")
    return str(path)


def test_evaluation_of_the_runs_own_splits_repeats_its_final_scores(trained: RunDir) -> None:
    stored = read_json(trained.result)["metrics"]
    assert ask(trained)["metrics"] == {"test": stored["test"]}
    assert ask(trained, split="validation")["metrics"] == {"validation": stored["validation"]}


def test_another_file_is_read_with_the_runs_labels_and_tokens(trained: RunDir) -> None:
    """The same texts in another file must give the same scores, to the last bit."""
    test = load_resolved(trained.config).data.test
    found = ask(trained, file=test)
    assert found["metrics"]["test"] == read_json(trained.result)["metrics"]["test"]
    assert found["samples"] >= SIZES["test"]


def test_an_evaluation_writes_a_folder_with_the_layout_of_a_run(run: RunDir) -> None:
    found = ask(run)
    evaluation = RunDir(Path(found["folder"]))
    assert evaluation.path.parent == run.evaluation("any").path.parent
    assert load_resolved(evaluation.config) == load_resolved(run.config)
    stored = read_json(evaluation.scores)
    assert {**stored, "folder": found["folder"], "found": False} == found
    assert predictions(evaluation, "test").read_bytes() == predictions(run, "test").read_bytes()
    assert (stored["state"], stored["step"]) == ("evaluated", read_json(run.result)["best"]["step"])


def test_evaluation_into_another_folder_leaves_the_run_unchanged(run: RunDir, tmp_path: Path) -> None:
    def contents() -> dict[str, int]:
        return {str(path): path.lstat().st_mtime_ns for path in run.path.rglob("*") if path != run.path}

    before = contents()
    ask(run, output=str(tmp_path / "elsewhere"))
    assert contents() == before


def test_scores_do_not_depend_on_the_number_of_processes(run: RunDir, tmp_path: Path) -> None:
    (found, *others) = in_ranks(3, ask_as_rank, run.path, tmp_path / "meeting")
    assert found["metrics"]["test"] == read_json(run.result)["metrics"]["test"]
    assert all(each["metrics"] == found["metrics"] for each in others)


def test_changed_data_are_scored_anew(run: RunDir, tmp_path: Path) -> None:
    first = ask(run, file=write(tmp_path, "fine film\tgood"))
    other = ask(run, file=write(tmp_path, "fine film\tgood", "dull plot\tbad"))
    assert (other["found"], other["samples"]) == (False, 2)
    assert other["folder"] != first["folder"]


def test_a_file_without_any_known_label_is_refused(run: RunDir, tmp_path: Path) -> None:
    file = write(tmp_path, "fine film\tpositive")
    with pytest.raises(DataError, match=r"other\.tsv: no row has one of the labels"):
        ask(run, file=file)


def test_a_missing_or_damaged_best_checkpoint_is_reported(run: RunDir) -> None:
    weights = run.best.resolve() / "model.safetensors"
    raw = bytearray(weights.read_bytes())
    raw[-1] ^= 1
    weights.write_bytes(raw)
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        ask(run)
    shutil.rmtree(weights.parent)
    with pytest.raises(CheckpointError, match=f"{weights.parent.name}, the best checkpoint of .* is gone"):
        ask(run)


def test_changed_training_data_is_refused(run: RunDir, tmp_path: Path) -> None:
    """Another vocabulary would give the weights other words."""
    changed = write(tmp_path, "fine film\tgood", "dull plot\tbad", name="train.tsv")
    config = run.config.read_text().replace(str(load_resolved(run.config).data.train), changed)
    run.config.write_text(config)
    with pytest.raises(DataError, match="have changed since"):
        ask(run)


def test_a_changed_best_checkpoint_is_scored_anew(run: RunDir) -> None:
    first = ask(run)
    manifest = run.best.resolve() / "MANIFEST.json"
    manifest.write_text(manifest.read_text() + "\n")
    assert ask(run)["folder"] != first["folder"]


def test_output_replaces_an_older_evaluation_and_no_other_folder(run: RunDir, tmp_path: Path) -> None:
    target = tmp_path / "results"
    assert ask(run, output=str(target))["folder"] == str(target)
    other = ask(run, output=str(target), split="validation")
    assert (other["found"], list(read_json(RunDir(target).scores)["metrics"])) == (False, ["validation"])
    assert not predictions(RunDir(target), "test").exists()
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="holds something other than a whole evaluation"):
        ask(run, output=str(precious))
    assert [path.name for path in precious.iterdir()] == ["notes.txt"]
    for content in ('{"auc": 1}', "[1]", "auc: 1"):
        RunDir(precious).scores.write_text(content)
        with pytest.raises(UserError, match="holds something other than a whole evaluation"):
            ask(run, output=str(precious))
        assert RunDir(precious).scores.read_text() == content
    with pytest.raises(UserError, match="holds something other"):
        ask(run, output=str(run.path))
    assert predictions(run, "test").exists()
