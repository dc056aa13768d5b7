"""Invalid or conflicting keys of text classification are refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from toolkit.config import check
from toolkit.errors import ConfigError, Fault
from toolkit.workloads.text_classification.config import DocNN


def the_fault(model: Mapping[str, Any] = MappingProxyType({}), **data: Any) -> Fault:
    """The only fault of an experiment with these keys of its model, or of its data."""
    sections = {"task": {"kind": "text_classification"}, "model": {"kind": "docnn", **model}}
    with pytest.raises(ConfigError) as caught:
        check({"name": "mails", **sections, "data": {"path": "mails.csv", **data}})
    (fault,) = caught.value.faults
    return fault


def test_single_share_is_refused_with_an_example_of_all_shares() -> None:
    """The given shares replace all defaults, so the fault names the section, not a missing share."""
    fault = the_fault(splits={"test": 0.2})
    assert fault.key == "data.splits"
    assert "train and validation" in fault.problem
    assert "train: 0.7, validation: 0.1, test: 0.2" in fault.hint


@pytest.mark.parametrize("name", ["train", "validation"])
def test_training_and_validation_need_a_share(name: str) -> None:
    fault = the_fault(splits={"train": 1, "validation": 1, name: 0})
    assert (fault.key, "above 0" in fault.problem) == (f"data.splits.{name}", True)


@pytest.mark.parametrize(
    "sizes, key",
    [
        ({"kernels": []}, "model.kernels"),
        ({"kernels": [3, 0]}, "model.kernels.1"),
        ({"hidden": [0]}, "model.hidden.0"),
    ],
)
def test_docnn_needs_kernels_and_layers_of_positive_width(sizes: dict[str, Any], key: str) -> None:
    assert the_fault(sizes).key == key


def test_word_vectors_need_a_tokenizer_that_makes_words() -> None:
    fault = the_fault({"vectors": "words.txt"}, tokenizer="pretrained", tokenizer_path="bert")
    assert (fault.key, "data.tokenizer" in fault.problem) == ("model.vectors", True)


def test_a_docnn_begins_with_the_file_of_its_vectors() -> None:
    assert list(DocNN().files()) == []
    assert list(DocNN(vectors="words.txt").files()) == [("model.vectors", Path("words.txt"))]


@pytest.mark.parametrize(
    "key, meant",
    [("max_length", "max_tokens"), ("val", "validation"), ("sep", "delimiter"), ("label", "label_column")],
)
def test_key_of_another_library_is_refused_with_a_suggestion(key: str, meant: str) -> None:
    assert the_fault(**{key: "x"}).hint == f"did you mean {meant}?"
