"""Experiments with detection of spelling errors: their files, and which keys fit together."""

from __future__ import annotations

from typing import Any

import pytest

from toolkit.config import check
from toolkit.config.identity import identity
from toolkit.registry import metrics_of


@pytest.fixture
def tree() -> dict[str, Any]:
    return {
        "name": "words",
        "task": {"kind": "sed_words"},
        "model": {"kind": "transformer"},
        "data": {"datasets": ["a.txt", "b.txt"], "tokenizer_path": "bpe.json", "dictionary": "words.txt"},
    }


@pytest.mark.parametrize("key", ["dataset_limits", "val_splits"])
def test_there_must_be_one_value_for_each_data_set(changed, faults, key):
    (fault,) = faults(check, changed(data={key: [5]}))
    assert (fault.key, fault.problem) == (f"data.{key}", "found 1, expected one for each of the 2 data sets")


@pytest.mark.parametrize(
    "data, key",
    [
        ({"path": "c.txt"}, "data.path"),
        ({"datasets": None}, "data.datasets"),
        ({"datasets": []}, "data.datasets"),
        ({"validation": ["c"], "val_splits": [1, 1]}, "data.val_splits"),
        ({"max_length": 1024}, "data.max_length"),
    ],
)
def test_keys_that_do_not_fit_together_are_refused(changed, faults, data, key):
    (fault,) = faults(check, changed(data=data))
    assert fault.key == key


def test_the_number_of_workers_does_not_change_the_identity(changed):
    assert identity(check(changed(data={"workers": 3}))) == identity(check(changed()))


@pytest.mark.parametrize(
    "sections, rates",
    [({}, True), ({"data": {"dictionary": None}}, False), ({"task": {"kind": "sed_sequence"}}, False)],
)
def test_real_words_are_scored_if_there_is_a_dictionary(changed, sections, rates):
    experiment = check(changed(**sections))
    names = {each.name for each in metrics_of(experiment.task, experiment.data)}
    assert ("real_word_rate" in names) == rates


@pytest.mark.parametrize("layers, tokenizer", [(2, None), (0, "bpe.json")])
def test_a_decoder_and_an_output_tokenizer_need_each_other(changed, faults, layers, tokenizer):
    tree = changed(task={"kind": "tokenization_repair_plus"}, data={"output_tokenizer_path": tokenizer})
    tree["model"] = {"kind": "tokenization_repair_plus", "repair_run": "runs/a", "num_sec_layers": layers}
    (fault,) = faults(check, tree)
    assert fault.key == "data.output_tokenizer_path"
    tree["model"]["num_sec_layers"] = 2 - layers
    check(tree)
