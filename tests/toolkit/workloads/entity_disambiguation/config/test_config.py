"""The rules for experiments of entity disambiguation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolkit.config import check


@pytest.fixture
def tree() -> dict[str, Any]:
    return {
        "name": "entities",
        "task": {"kind": "entity_disambiguation"},
        "model": {"kind": "bi_encoder", "path": "/models/minilm"},
        "data": {
            "path": "sentences.jsonl",
            "entity_db": "entity_db",
            "tokenizer_path": "/models/minilm",
            "eval_slices": ["unif_NS_TL", "verbs"],
            "slices": {"verbs": "gold LIKE '%.v.%'"},
        },
    }


def test_a_model_begins_with_the_folder_of_its_encoder(changed):
    assert list(check(changed()).model.files()) == [("model.path", Path("/models/minilm"))]


def test_the_metric_may_be_the_accuracy_of_a_scored_slice(changed, faults):
    assert check(changed(evaluation={"metric": "accuracy/unif_NS_TL:max"}))
    (fault,) = faults(check, changed(evaluation={"metric": "accuracy/unif_NS_TO:max"}))
    assert fault.key == "evaluation.metric"
    assert "expected one of loss, accuracy, popularity, accuracy/unif_NS_TL, accuracy/verbs" in fault.problem
    assert fault.hint == "did you mean accuracy/unif_NS_TL?"


@pytest.mark.parametrize(
    "sections, key, said",
    [
        ({"data": {"eval_slices": ["unif_NS_TLL"]}}, "data.eval_slices.0", "did you mean unif_NS_TL?"),
        ({"data": {"slices": {"unif_mine": "1"}}}, "data.slices.unif_mine", ""),
        *(
            ({"data": {"eval_slices": [name]}}, "data.eval_slices.0", "expected a name of letters")
            for name in ("a:b", "a b", "a/b", "")
        ),
        ({"data": {"eval_slices": ["final_loss"]}}, "data.eval_slices.0", "accuracy is the metric accuracy"),
        ({"data": {"torso_above": 6, "head_above": 5}}, "data.torso_above", "at most data.head_above (5)"),
        (
            {"data": dict.fromkeys(("title", "types", "relations", "description"), False)},
            "data",
            "an entity's text would be empty",
        ),
        (
            {"model": {"kind": "co_mention", "hidden": 10, "heads": 4}},
            "model.heads",
            "found 4, which does not divide model.hidden (10)",
        ),
        ({"data": {"train": "train.jsonl"}}, "data", "found path together with train"),
    ],
)
def test_a_wrong_value_is_reported_with_its_key(changed, faults, sections, key, said):
    (fault,) = faults(check, changed(**sections))
    assert fault.key == key
    assert said in f"{fault.problem} {fault.hint}"


def test_the_torso_may_be_empty_as_in_the_command(changed):
    assert check(changed(data={"torso_above": 5, "head_above": 5}))


def test_slice_that_lines_may_define_is_accepted(changed):
    assert check(changed(data={"eval_slices": ["of_the_lines"]}))


@pytest.mark.parametrize(
    "model", [{"entity_vectors": "cached"}, {"kind": "co_mention"}], ids=["cached", "co_mention"]
)
def test_titles_can_be_hidden_only_if_the_encoder_of_entities_is_trained(changed, faults, model):
    assert check(changed(task={"mask_title": True}))
    (fault,) = faults(check, changed(task={"mask_title": True}, model=model))
    assert fault.key == "task.mask_title"


def test_a_shared_encoder_has_one_number_of_layers(changed, faults):
    (fault,) = faults(check, changed(model={"context_layers": 2}))
    assert (fault.key, fault.hint) == ("model.entity_layers", "the same number, or share: false")
    assert check(changed(model={"context_layers": 2, "share": False}))
    assert check(changed(model={"context_layers": 2, "entity_layers": 2}))
    assert check(changed(model={"context_layers": 2, "entity_vectors": "cached"}))
