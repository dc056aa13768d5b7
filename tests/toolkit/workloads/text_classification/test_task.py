"""Training and scores of text classification."""

from __future__ import annotations

from pathlib import Path

from tests.toolkit.support.rescoring import ask
from tests.toolkit.support.tiny_training import Attempt, Lab
from tests.toolkit.workloads.text_classification.tiny_texts import tiny_docnn
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir
from toolkit.workloads.text_classification.task import TextClassificationTask


def test_a_run_without_a_share_for_testing_finishes_and_is_scored_again_without_it(tmp_path: Path) -> None:
    files = ("data.train=null", "data.validation=null", "data.test=null", f"data.path={tmp_path}/train.tsv")
    splits = "data.splits={train: 0.8, validation: 0.2, test: 0}"
    lab = Lab(tmp_path)
    run = lab.train(tiny_docnn(tmp_path, *files, splits, "train.epochs=1"), Attempt())
    assert [*read_json(run.result)["metrics"]] == ["train", "validation"]
    assert [*ask(run)["metrics"]] == ["validation"]


def test_another_file_is_scored_without_its_unknown_labels_and_gives_the_predictions_its_name(
    tmp_path: Path,
) -> None:
    lab = Lab(tmp_path)
    run = lab.train(tiny_docnn(tmp_path, "train.epochs=1"), Attempt())
    other = tmp_path / "other.csv"
    other.write_text("body,verdict\nfine movie,good\nawful scene,bad\nso so,meh\n")
    found = ask(run, file=str(other), overrides=["data.text_column=body", "data.label_column=verdict"])
    assert found["samples"] == 2
    assert "left out 1 row with unknown labels: 'meh' 1" in found["summary"]
    assert RunDir(Path(found["folder"])).artifact("other_testset_predictions.csv").exists()


def test_a_task_describes_its_data_alike_whether_it_prepares_or_opens_them(tmp_path: Path) -> None:
    experiment = tiny_docnn(tmp_path)
    prepares, opens = TextClassificationTask(experiment), TextClassificationTask(experiment)
    assert prepares.summary == opens.summary
    assert prepares.summary.startswith("train ")
