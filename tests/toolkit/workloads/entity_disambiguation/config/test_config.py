"""The rules for experiments of entity disambiguation."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from toolkit.config import check


@pytest.fixture
def entities() -> dict[str, Any]:
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


@pytest.fixture
def changed(entities):
    """The tree with some sections changed."""

    def run(**sections):
        tree = copy.deepcopy(entities)
        for name, values in sections.items():
            tree.setdefault(name, {}).update(values)
        return tree

    return run


def test_the_metric_may_be_the_accuracy_of_a_scored_slice(changed, faults):
    assert check(changed(evaluation={"metric": "accuracy/unif_NS_TL:max"}))
    (fault,) = faults(check, changed(evaluation={"metric": "accuracy/unif_NS_TO:max"}))
    assert fault.key == "evaluation.metric"
    assert "expected one of loss, accuracy, popularity, accuracy/unif_NS_TL, accuracy/verbs" in fault.problem
    assert fault.hint == "did you mean accuracy/unif_NS_TL?"


def test_prefix_unif_is_reserved_for_built_slices(changed, faults):
    (fault,) = faults(check, changed(data={"eval_slices": ["unif_NS_TLL"]}))
    assert fault.key == "data.eval_slices.0"
    assert fault.hint == "did you mean unif_NS_TL?"
    (fault,) = faults(check, changed(data={"slices": {"unif_mine": "1"}}))
    assert fault.key == "data.slices.unif_mine"


@pytest.mark.parametrize("name", ["a:b", "a b", "a/b", ""])
def test_the_name_of_a_slice_must_be_valid_in_metrics_and_file_names(changed, faults, name):
    (fault,) = faults(check, changed(data={"eval_slices": [name]}))
    assert "expected a name of letters" in fault.problem


def test_eval_slices_cannot_name_the_slice_of_all_mentions(changed, faults):
    (fault,) = faults(check, changed(data={"eval_slices": ["final_loss"]}))
    assert "its accuracy is the metric accuracy" in fault.hint


def test_slice_that_lines_may_define_is_accepted(changed):
    assert check(changed(data={"eval_slices": ["of_the_lines"]}))


def test_torso_above_must_be_less_than_head_above(changed, faults):
    (fault,) = faults(check, changed(data={"torso_above": 5, "head_above": 5}))
    assert (fault.key, "less than data.head_above (5)" in fault.problem) == ("data.torso_above", True)


def test_the_text_of_an_entity_must_not_be_empty(changed, faults):
    parts = dict.fromkeys(("title", "types", "relations", "description"), False)
    (fault,) = faults(check, changed(data=parts))
    assert "an entity's text would be empty" in fault.problem


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


def test_heads_must_divide_the_hidden_size(changed, faults):
    (fault,) = faults(check, changed(model={"kind": "co_mention", "hidden": 10, "heads": 4}))
    assert fault.key == "model.heads"
    assert fault.problem == "found 4, which does not divide model.hidden (10)"


def test_path_cannot_be_combined_with_files_of_splits(changed, faults):
    (fault,) = faults(check, changed(data={"train": "train.jsonl"}))
    assert "found path together with train" in fault.problem
