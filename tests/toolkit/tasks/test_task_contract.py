"""What every task of the table promises. A new task is a row in SAMPLES."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.toolkit.bert import tiny_bert
from tests.toolkit.entity_files import tiny_cached, tiny_co_mention, tiny_entities
from tests.toolkit.spelling_files import (
    tiny_corrections,
    tiny_plus,
    tiny_plus_detection,
    tiny_repair,
    tiny_repaired_corrections,
    tiny_texts,
    tiny_texts_graph,
    tiny_word_corrections,
    tiny_words,
    tiny_words_graph,
)
from tests.toolkit.tiny import assert_equal_runs, metrics_lines, tiny
from tests.toolkit.training import Attempt, Lab
from toolkit.config import Experiment, identity, load_resolved, to_yaml
from toolkit.config.kinds import TASKS, kind_of, metric_names
from toolkit.config.schema import Evaluation as Batches
from toolkit.display import Silent
from toolkit.distributed import Group
from toolkit.evaluate import evaluate
from toolkit.files import read_json_lines
from toolkit.optim import build_optimizer
from toolkit.rng import seed_everything
from toolkit.rundir import RunDir
from toolkit.tasks.base import Task, task_class
from toolkit.worker import build_training
from toolkit.world import World

CPU = torch.device("cpu")

#: Of each task, and what is special: makes a small experiment with its data in a folder.
SAMPLES: Mapping[str, Callable[..., Experiment]] = {
    "entity_disambiguation": tiny_entities,
    "entity_disambiguation, cached vectors, steps of tokens": tiny_cached,
    "entity_disambiguation, co-mention": tiny_co_mention,
    "sec_nmt": tiny_corrections,
    "sec_nmt, characters without white space": tiny_repaired_corrections,
    "sec_words_nmt, with context, a beam, steps of tokens": tiny_word_corrections,
    "sed_sequence": tiny_texts,
    "sed_sequence, graph": tiny_texts_graph,
    "sed_words": tiny_words,
    "sed_words, graph, steps of tokens": tiny_words_graph,
    "text_classification": tiny,
    "tokenization_repair": tiny_repair,
    "tokenization_repair_plus": tiny_plus,
    "tokenization_repair_plus, detection on fixed repairs, steps of tokens": tiny_plus_detection,
    "text_classification, pretrained and folded": tiny_bert,
}


def test_every_task_of_the_table_has_sample_data() -> None:
    assert {name.partition(",")[0] for name in SAMPLES} == TASKS.keys()


@pytest.fixture(scope="module", params=sorted(SAMPLES))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def lab(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp(kind))


@pytest.fixture(scope="module")
def experiment(lab: Lab, kind: str) -> Experiment:
    return SAMPLES[kind](lab.folder, "train.epochs=1", "train.reduction=exact")


@pytest.fixture(scope="module")
def task(experiment: Experiment) -> Task:
    task_class(experiment).prepare(experiment)
    return task_class(experiment)(experiment)


@pytest.fixture
def model(task: Task) -> torch.nn.Module:
    seed_everything(0)
    return task.model()


def few(task: Task, count: int = 8) -> Any:
    return task.collate("train", np.arange(count), CPU)


def test_loss_is_a_finite_sum_with_its_count(task: Task, model: torch.nn.Module) -> None:
    loss = task.loss(model, few(task))
    assert loss.total.ndim == 0
    assert torch.isfinite(loss.total)
    assert loss.count > 0
    assert loss.tokens == task.splits["train"].lengths[:8].sum()
    assert loss.sums.shape == (len(task.train_sums),)
    loss.total.backward()
    learnt = [p for p in model.parameters() if p.requires_grad]
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in learnt)


def test_loss_of_a_batch_is_the_sum_over_its_samples(task: Task, model: torch.nn.Module) -> None:
    model.eval()
    whole = task.loss(model, few(task))
    parts = [task.loss(model, task.collate("train", np.array([index]), CPU)) for index in range(8)]
    assert sum(part.total.item() for part in parts) == pytest.approx(whole.total.item(), rel=1e-4)
    assert sum(part.count for part in parts) == whole.count
    assert sum(part.tokens for part in parts) == whole.tokens
    torch.testing.assert_close(torch.stack([part.sums for part in parts]).sum(0), whole.sums)


def test_the_test_set_in_another_file_is_scored_as_it_is(
    experiment: Experiment, task: Task, model: torch.nn.Module
) -> None:
    test = experiment.data.test
    files: dict[str, Any] = dict.fromkeys(kind_of(experiment.task).own_files)
    files["path"] = test if isinstance(test, str) else test[0]
    other = task.on(dataclasses.replace(experiment.data, **files))
    assert list(other.splits) == ["test"]
    group = Group(World.single(), CPU)
    own, found = (evaluate(each, model, "test", group, Batches(batch_size=8), None) for each in (task, other))
    np.testing.assert_array_equal(found.sums, own.sums)
    np.testing.assert_array_equal(found.outputs, own.outputs)
    assert other.metrics("test", found) == task.metrics("test", own)


def test_score_of_two_batches_is_the_sum_of_theirs(task: Task, model: torch.nn.Module) -> None:
    model.eval()
    whole, first, second = (
        task.score(model, task.collate("train", np.arange(*places), CPU)) for places in ((11,), (4,), (4, 11))
    )
    torch.testing.assert_close(first.sums + second.sums, whole.sums, rtol=1e-5, atol=1e-8)
    torch.testing.assert_close(
        torch.cat([first.outputs, second.outputs]), whole.outputs, rtol=1e-4, atol=1e-5
    )
    assert whole.sums.shape == (len(task.score_sums),)
    assert whole.outputs.shape == (11, task.output_width)
    assert whole.sums[1] == task.loss(model, task.collate("train", np.arange(11), CPU)).count


def test_eight_examples_can_be_learnt_by_heart(
    experiment: Experiment, task: Task, model: torch.nn.Module
) -> None:
    optimizer = build_optimizer(model, dataclasses.replace(experiment.optimizer, lr=0.01, weight_decay=0.0))
    model.eval()  # without dropout
    batch = few(task)
    first = task.loss(model, batch).total.item()
    for _ in range(150):
        optimizer.zero_grad()
        loss = task.loss(model, batch)
        loss.total.backward()
        optimizer.step()
    assert loss.total.item() < 0.05 * first


def test_metrics_are_those_that_the_table_names(
    experiment: Experiment, task: Task, model: torch.nn.Module
) -> None:
    group = Group(World.single(), CPU)
    result = evaluate(task, model, "validation", group, Batches(batch_size=5), None)
    metrics = task.metrics("validation", result)
    assert metrics.keys() == set(metric_names(experiment.task, experiment.data))
    assert all(isinstance(value, float) and np.isfinite(value) for value in metrics.values())
    assert metrics["loss"] == pytest.approx(result.sums[0] / result.sums[1])


def test_metrics_of_training_come_from_its_sums(task: Task, model: torch.nn.Module) -> None:
    loss = task.loss(model, few(task))
    sums = dict(zip(task.train_sums, loss.sums.tolist(), strict=True))
    metrics = task.train_metrics(sums, loss.count)
    assert "loss" not in metrics
    assert all(np.isfinite(value) for value in metrics.values())


def test_artifacts_are_written_where_the_run_says(task: Task, model: torch.nn.Module, tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    for split in ("validation", "test"):
        result = evaluate(task, model, split, Group(World.single(), CPU), Batches(batch_size=5), None)
        task.write_report(run, split, result)
    written = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert all(run.artifacts in path.parents for path in written)
    assert predicted(run, "test") == len(task.splits["test"])


def predicted(run: RunDir, split: str) -> int:
    """Samples in the predictions of a split, in whichever form its task writes them."""
    if run.detections(split).exists():
        return len(run.detections(split).read_text(encoding="utf-8").splitlines())
    for lines in (run.corrections(split), run.repairs(split)):
        if lines.exists():
            return len(lines.read_text(encoding="utf-8").splitlines())
    if run.dump(split).exists():
        return sum(len(line["predictions"]) for line in read_json_lines(run.dump(split)))
    return len(run.predictions(split).read_text(encoding="utf-8").splitlines()) - 1


def test_parameters_survive_yaml(experiment: Experiment, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(to_yaml(experiment), encoding="utf-8")
    assert load_resolved(path) == experiment
    assert identity(load_resolved(path)) == identity(experiment)


def test_model_is_the_same_for_the_same_seed(task: Task, model: torch.nn.Module) -> None:
    seed_everything(0)
    again = task.model()
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in model.state_dict().items())


def test_data_have_the_same_name_each_time_and_other_data_another(
    experiment: Experiment, task: Task, kind: str, tmp_path: Path
) -> None:
    assert type(task)(experiment).fingerprint == task.fingerprint
    limit = "data.max_tokens=10" if hasattr(experiment.data, "max_tokens") else "data.max_length=50"
    other = SAMPLES[kind](tmp_path, limit)
    task_class(other).prepare(other)
    assert task_class(other)(other).fingerprint != task.fingerprint


def test_one_process_two_processes_and_a_stop_give_the_same_bytes(lab: Lab, experiment: Experiment) -> None:
    """The stop is after an evaluation, from which the model goes back to training."""
    whole = lab.train(experiment, Attempt())
    assert_equal_runs(lab.train(experiment, Attempt(size=2)), whole)
    evaluated = next(line["step"] for line in metrics_lines(whole) if line["split"] == "validation")
    assert_equal_runs(lab.train(experiment, Attempt(size=2, stop_after=evaluated + 1), Attempt()), whole)


def test_every_layer_trains_from_the_first_step_on(
    experiment: Experiment, task: Task, tmp_path: Path
) -> None:
    """Models that transformers has loaded are not in that mode; after an evaluation they would be."""
    alone = Group(World.single(), CPU)
    model = build_training(RunDir(tmp_path), experiment, task, alone, Silent()).state.model
    modes = [module.training for module in model.modules()]
    assert any(modes)
    assert [module.training for module in model.eval().train().modules()] == modes
