"""The contract of every task of our workloads. A new task is a row in SAMPLES."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _pytest.mark import ParameterSet

from tests.tiers import first_quick
from tests.toolkit.support.tiny import assert_equal_runs, metrics_lines
from tests.toolkit.support.tiny_training import Attempt, Lab
from tests.toolkit.workloads.entity_disambiguation.entity_files import (
    tiny_cached,
    tiny_co_mention,
    tiny_entities,
)
from tests.toolkit.workloads.spelling.spelling_files import (
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
from tests.toolkit.workloads.text_classification.tiny_texts import tiny_balanced, tiny_bert, tiny_docnn
from toolkit.config import Experiment, load_resolved, to_yaml
from toolkit.config.identity import identity
from toolkit.distributed.process_group import Group
from toolkit.files import read_json_lines
from toolkit.registry import task_kinds
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.task import Task, task_class
from toolkit.testing import contract
from toolkit.training.assembly.build_training import build_training
from toolkit.training.output.progress_display import Display
from toolkit.workloads.entity_disambiguation.files import DisambiguationFiles
from toolkit.workloads.spelling.files import SpellingFiles
from toolkit.workloads.text_classification.files import ClassificationFiles

CPU = torch.device("cpu")

#: Task and variant -> a function that makes a small experiment with its data in a folder.
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
    "text_classification": tiny_docnn,
    "tokenization_repair": tiny_repair,
    "tokenization_repair_plus": tiny_plus,
    "tokenization_repair_plus, detection on fixed repairs, steps of tokens": tiny_plus_detection,
    "text_classification, pretrained and folded": tiny_bert,
    "text_classification, balanced classes": tiny_balanced,
}


#: One for each kind of model is quick.
_QUICK = ("entity_disambiguation", "text_classification", "tokenization_repair")
#: Unlike another sample in their labels, tokens or weights of classes, not in the model.
_SAME_MODEL = (
    "sec_nmt, characters without white space",
    "sed_sequence",
    "sed_sequence, graph",
    "text_classification, balanced classes",
)
#: With the loss and the model of another sample.
_SAME_TRAINING = ("sec_nmt, characters without white space", "sed_sequence, graph")


def kinds(quick: Sequence[str], last: Sequence[str] = _SAME_MODEL) -> list[ParameterSet]:
    """The samples as cases, of which the quick ones are first, and the last ones last."""
    assert {*quick, *last} <= SAMPLES.keys()
    names = sorted(SAMPLES, key=lambda name: (name not in quick, name in last))
    return first_quick(names, quick=len(quick))


KINDS = kinds(_QUICK)
#: Those that learn by heart.
MODELS = KINDS[: -len(_SAME_MODEL)]
#: Those that are trained on two processes.
TRAINED = [each for each in KINDS if each.values[0] not in _SAME_TRAINING]
#: The checks that do not train.
_CHECKS = [each for each in contract.CHECKS if each is not contract.few_samples_can_be_learnt_by_heart]


def test_every_task_has_sample_data() -> None:
    # Tasks whose sections depend on a user's file have separate tests.
    ours = {
        kind
        for kind, task in task_kinds().items()
        if task.task.startswith("toolkit.") and task.own_sections is None
    }
    assert {name.partition(",")[0] for name in SAMPLES} == ours


@pytest.fixture(scope="module", params=KINDS)
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
    return contract.new_model(task)


@pytest.mark.parametrize("check", _CHECKS, ids=lambda check: check.__name__)
def test_every_task_keeps_the_contract(
    check: contract.Check, experiment: Experiment, task: Task, model: torch.nn.Module
) -> None:
    check(experiment, task, model)


@pytest.mark.parametrize("kind", MODELS, indirect=True)
def test_few_samples_can_be_learnt_by_heart(
    experiment: Experiment, task: Task, model: torch.nn.Module
) -> None:
    contract.few_samples_can_be_learnt_by_heart(experiment, task, model)


def test_file_with_the_test_set_gets_the_scores_of_the_test_set(
    experiment: Experiment, task: Task, model: torch.nn.Module
) -> None:
    test = experiment.data.test
    files: dict[str, Any] = dict.fromkeys(task_kinds()[experiment.task.kind].own_files)
    files["path"] = test if isinstance(test, str) else test[0]
    other = task.on(dataclasses.replace(experiment.data, **files))
    assert list(other.splits) == ["test"]
    own, found = (contract.evaluated(each, model, "test") for each in (task, other))
    np.testing.assert_array_equal(found.sums, own.sums)
    for name, lists in own.outputs.items():
        np.testing.assert_array_equal(found.outputs[name].values, lists.values)
        np.testing.assert_array_equal(found.outputs[name].offsets, lists.offsets)
    assert other.metrics("test", found) == task.metrics("test", own)


def test_a_split_in_which_nothing_is_scored_has_no_loss(
    task: Task, model: torch.nn.Module, tmp_path: Path
) -> None:
    found = contract.evaluated(task, model, "test")
    nothing = dataclasses.replace(found, sums=np.zeros_like(found.sums))
    with np.errstate(invalid="ignore"):
        assert math.isnan(task.metrics("test", nothing)["loss"])
        task.write_report(RunDir(tmp_path), "test", nothing)


def test_artifacts_are_in_the_artifacts_folder(task: Task, model: torch.nn.Module, tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    for split in ("validation", "test"):
        task.write_report(run, split, contract.evaluated(task, model, split))
    written = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert all(run.artifacts in path.parents for path in written)
    assert predicted(run, "test") == len(task.splits["test"])


def predicted(run: RunDir, split: str) -> int:
    """Samples in the predictions of a split, in whichever form its task writes them."""
    if SpellingFiles(run).detections(split).exists():
        return len(SpellingFiles(run).detections(split).read_text(encoding="utf-8").splitlines())
    for lines in (SpellingFiles(run).corrections(split), SpellingFiles(run).repairs(split)):
        if lines.exists():
            return len(lines.read_text(encoding="utf-8").splitlines())
    if DisambiguationFiles(run).dump(split).exists():
        return sum(len(line["predictions"]) for line in read_json_lines(DisambiguationFiles(run).dump(split)))
    return len(ClassificationFiles(run).predictions(split).read_text(encoding="utf-8").splitlines()) - 1


def test_experiment_survives_yaml(experiment: Experiment, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(to_yaml(experiment), encoding="utf-8")
    assert load_resolved(path) == experiment
    assert identity(load_resolved(path)) == identity(experiment)


def test_fingerprint_is_reproducible_and_changes_with_a_data_setting(
    experiment: Experiment, task: Task, kind: str, tmp_path: Path
) -> None:
    assert type(task)(experiment).fingerprint == task.fingerprint
    limit = "data.max_tokens=10" if hasattr(experiment.data, "max_tokens") else "data.max_length=50"
    other = SAMPLES[kind](tmp_path, limit)
    task_class(other).prepare(other)
    assert task_class(other)(other).fingerprint != task.fingerprint


@pytest.mark.parametrize("kind", TRAINED, indirect=True)
def test_one_process_two_processes_and_a_stop_give_the_same_bytes(lab: Lab, experiment: Experiment) -> None:
    """The stop is after an evaluation, from which the model goes back to training."""
    whole = lab.train(experiment, Attempt())
    evaluated = next(line["step"] for line in metrics_lines(whole) if line["split"] == "validation")
    assert_equal_runs(lab.train(experiment, Attempt(stop_after=evaluated + 1), Attempt(size=2)), whole)


def test_all_layers_are_in_training_mode_from_the_first_step(
    experiment: Experiment, task: Task, tmp_path: Path
) -> None:
    """transformers loads models in evaluation mode; an evaluation would leave them in training mode."""
    alone = Group(World.single(), CPU)
    model = build_training(RunDir(tmp_path), experiment, task, alone, Display()).state.model
    modes = [module.training for module in model.modules()]
    assert any(modes)
    assert [module.training for module in model.eval().train().modules()] == modes
