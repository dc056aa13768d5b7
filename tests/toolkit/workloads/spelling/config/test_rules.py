"""Keys of a spelling experiment that do not fit together are refused, and their defaults are the study's."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from toolkit.config import check
from toolkit.config.identity import identity
from toolkit.registry import extra_with, metrics_of

#: Task of each model.
TASKS = {
    "transformer": "sed_words",
    "graph": "sed_words",
    "nmt": "sec_nmt",
    "words_nmt": "sec_words_nmt",
    "tokenization_repair": "tokenization_repair",
    "tokenization_repair_plus": "tokenization_repair_plus",
}
WRITES = ("nmt", "words_nmt")
PLUS = "tokenization_repair_plus"
OWN_SIZES = [model for model in TASKS if model != PLUS]
SPACES = {"kind": "whitespace"}
NESTED_SPACES = {"kind": "chained", "steps": ["artificial", {"kind": "switch", "choices": ["none", SPACES]}]}


def tree(model: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Return an experiment with a model, and with other values of some keys."""
    data = {"datasets": ["a.txt", "b.txt"], "tokenizer_path": "bpe.json", "dictionary": "words.txt"}
    if model in WRITES:
        data["output_tokenizer_path"] = "bpe.json"
    sections: dict[str, Any] = {"task": {"kind": TASKS[model]}, "model": {"kind": model}, "data": data}
    if model == PLUS:
        sections["model"]["repair_run"] = "runs/a"
    for key, value in changes.items():
        section, _, name = key.partition(".")
        sections[section][name] = value
    return {"name": "n", **sections}


#: Models, changed keys, and what is said about the first of these keys.
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    *((each, {"task.beam_width": 10}, "found 10, but task.search greedy has no beam") for each in WRITES),
    *((each, {"data.output_tokenizer_path": None}, f"{TASKS[each]} writes texts") for each in WRITES),
    *((each, {"data.max_length": 600}, "model.max_input_length") for each in WRITES),
    ("transformer", {"data.max_length": 1024}, "model.max_length"),
    ("words_nmt", {"data.noise": SPACES}, "found whitespace"),
    ("words_nmt", {"data.noise": NESTED_SPACES}, "found whitespace"),
    ("graph", {"data.dataset_limits": [5]}, "found 1, expected one for each of the 2 data sets"),
    ("graph", {"data.val_splits": [5]}, "found 1, expected one for each of the 2 data sets"),
    ("graph", {"data.val_splits": [1, 1], "data.validation": ["c"]}, "with validation"),
    ("graph", {"data.path": "c.txt"}, "together with datasets"),
    ("graph", {"data.datasets": None}, "no file"),
    ("graph", {"data.datasets": []}, "no file"),
    (PLUS, {"data.output_tokenizer_path": None, "model.num_sec_layers": 2}, "num_sec_layers write words"),
    (PLUS, {"data.output_tokenizer_path": "bpe.json"}, "the model writes nothing"),
    ("tokenization_repair", {"model.class_weights": [1, 5]}, "three"),
    *((each, {"model.hidden_dim": 64, "model.num_heads": 3}, "3 attention heads") for each in OWN_SIZES),
    *((each, {"model.hidden_dim": 63, "model.num_heads": 1}, "even") for each in OWN_SIZES),
]


@pytest.mark.parametrize("model, changes, said", REFUSED)
def test_keys_that_do_not_fit_together_are_refused(faults, model, changes, said) -> None:
    (fault,) = faults(check, tree(model, changes))
    assert fault.key == next(iter(changes))
    assert said in f"{fault.problem} {fault.hint}"


@pytest.mark.parametrize(
    "model, changes",
    [
        *((each, {"task.beam_width": 10, "task.search": "beam"}) for each in WRITES),
        *((each, {"data.max_length": 600, "model.max_input_length": 600}) for each in WRITES),
        ("nmt", {"data.noise": SPACES}),
        ("nmt", {"data.noise": NESTED_SPACES}),
        ("tokenization_repair_plus", {"model.num_sec_layers": 2, "data.output_tokenizer_path": "bpe.json"}),
        ("tokenization_repair", {"model.class_weights": [1, 2, 3]}),
    ],
)
def test_keys_that_fit_together_are_accepted(model, changes) -> None:
    check(tree(model, changes))


def test_a_width_without_a_beam_is_accepted_from_runs_of_earlier_versions() -> None:
    assert check(tree("nmt", {"task.beam_width": 10}), is_stored=True).task.beam_width == 10


@pytest.mark.parametrize("model", TASKS)
def test_defaults_are_the_sizes_of_the_study(model) -> None:
    found = check(tree(model, {})).model
    if model in OWN_SIZES:
        assert (found.hidden_dim, found.heads, getattr(found, "feed_forward", 1024)) == (512, 8, 1024)
    assert found.dropout == 0.1


def test_the_number_of_workers_does_not_change_the_identity() -> None:
    assert identity(check(tree("graph", {"data.workers": 3}))) == identity(check(tree("graph", {})))


@pytest.mark.parametrize(
    "changes, rates", [({}, True), ({"data.dictionary": None}, False), ({"task.kind": "sed_sequence"}, False)]
)
def test_real_words_are_scored_if_there_is_a_dictionary(changes, rates) -> None:
    experiment = check(tree("graph", changes))
    names = {each.name for each in metrics_of(experiment.task, experiment.data)}
    assert ("real_word_rate" in names) == rates


def test_a_missing_package_is_named_with_its_extra_before_anything_starts(
    faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    (fault,) = faults(check, tree("nmt", {}))
    assert fault.key == "task.kind"
    assert "rapidfuzz" in fault.problem
    assert "slurm-toolkit[spelling]" in fault.hint


def test_the_extra_of_a_package_is_found_in_the_metadata_of_distributions() -> None:
    assert extra_with("symspellpy") == "slurm-toolkit[spelling]"
    # numpy is always installed; symspell is only the beginning of a package's name.
    assert extra_with("numpy") == extra_with("symspell") == ""
