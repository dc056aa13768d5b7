"""Weights of classes in the loss of training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.toolkit.workloads.text_classification.tiny_texts import tiny_docnn
from toolkit.errors import ConfigError, DataError, UserError
from toolkit.files import read_json
from toolkit.precheck.check_inputs import check_inputs
from toolkit.run.run_dir import RunDir
from toolkit.workloads.text_classification.data import checks
from toolkit.workloads.text_classification.task import Batch, TextClassificationTask, class_weights

LABELS = ("ham", "spam", "other")
CPU = torch.device("cpu")


def test_balanced_classes_have_equal_total_weights_with_mean_one() -> None:
    codes = np.array([0] * 6 + [1] * 2 + [2] * 4)
    weights = class_weights("balanced", LABELS, codes)
    assert weights is not None
    assert weights[codes].mean() == pytest.approx(1)
    assert np.bincount(codes, weights[codes]) == pytest.approx([4, 4, 4])


def test_a_class_without_samples_has_weight_0() -> None:
    weights = class_weights("balanced", LABELS, np.array([0, 0, 1]))
    assert weights == pytest.approx([0.5, 1, 0])


def test_labels_without_a_given_weight_have_weight_1() -> None:
    assert class_weights({"spam": 5}, LABELS, np.array([0])) == pytest.approx([1, 5, 1])
    assert class_weights(None, LABELS, np.array([0])) is None


def test_only_the_loss_of_training_is_weighted(tmp_path: Path) -> None:
    task = TextClassificationTask(tiny_docnn(tmp_path, "task.class_weights=balanced"))
    plain = TextClassificationTask(tiny_docnn(tmp_path))
    model = task.model().eval()
    batch = task.collate("train", np.arange(6), CPU)
    assert batch.weights is not None
    each = functional.cross_entropy(model(batch.tokens), batch.labels, reduction="none")
    assert task.loss(model, batch).total.item() == pytest.approx((each * batch.weights).sum().item())
    held_out: list[Batch] = [of.collate("validation", np.arange(4), CPU) for of in (task, plain)]
    one, other = (of.score(model, held) for of, held in zip((task, plain), held_out, strict=True))
    assert torch.equal(one.sums, other.sums)
    for name, of in (("weighted", task), ("plain", plain)):
        of.export(RunDir(tmp_path / name), model)
    told, nothing = (
        read_json(RunDir(tmp_path / name).artifact("labels.json")) for name in ("weighted", "plain")
    )
    assert "class_weights" in told["notes"][-1]
    assert "notes" not in nothing


@pytest.mark.parametrize(
    "wrong", ["balance", "{good: -1}", "{good: x}", "{good: true}", "[1, 2]", "{goood: 2}"]
)
def test_invalid_class_weights_are_refused_before_anything_starts(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(ConfigError, match=r"class_weights.*(number|good)"):
        tiny_docnn(tmp_path, "data.labels=[bad,good]", f"task.class_weights={wrong}")


@pytest.mark.parametrize("is_prepared", [False, True])
def test_a_weight_for_a_label_that_the_data_do_not_have_is_refused_before_the_job(
    tmp_path: Path, is_prepared: bool
) -> None:
    check_inputs(tiny_docnn(tmp_path, "task.class_weights={good: 2}"))
    experiment = tiny_docnn(tmp_path, "task.class_weights={good: 2, goood: 2}")
    if is_prepared:
        TextClassificationTask.prepare(experiment)
    with pytest.raises(
        DataError, match=r"class_weights\.goood.*'goood', which the training set does not.*good"
    ):
        check_inputs(experiment)


def test_the_labels_of_a_large_unprepared_table_are_checked_by_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = tiny_docnn(tmp_path, "task.class_weights={goood: 2}")
    monkeypatch.setattr(checks, "_FEW_BYTES", 10)
    check_inputs(experiment)
    with pytest.raises(UserError, match="names the label 'goood'"):
        TextClassificationTask(experiment)


@pytest.mark.parametrize("labels", ["null", "[bad,good]"])
def test_weights_that_are_0_for_all_labels_are_refused_before_the_job(tmp_path: Path, labels: str) -> None:
    override = f"data.labels={labels}"
    check_inputs(tiny_docnn(tmp_path, override, "task.class_weights={good: 0}"))
    with pytest.raises(DataError, match=r"task\.class_weights: found 0 for each label"):
        check_inputs(tiny_docnn(tmp_path, override, "task.class_weights={good: 0, bad: 0}"))


def test_weights_that_are_0_for_all_samples_are_refused_by_the_run() -> None:
    with pytest.raises(UserError, match="0 for every text of the training set"):
        class_weights({"ham": 0, "spam": 0}, LABELS, np.array([0, 1]))
