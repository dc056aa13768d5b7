"""Models of the spelling study as the `model` section of an experiment."""

from __future__ import annotations

from typing import Any

import pytest

from toolkit.config import check
from toolkit.errors import ConfigError

TASKS = {
    "transformer": "sed_words",
    "graph": "sed_words",
    "nmt": "sec_nmt",
    "words_nmt": "sec_words_nmt",
    "tokenization_repair": "tokenization_repair",
    "tokenization_repair_plus": "tokenization_repair_plus",
}


def model(kind: str, **more: Any) -> Any:
    if kind == "tokenization_repair_plus":
        more.setdefault("repair_run", "/runs/repair")
    data = {"path": "texts.txt", "tokenizer_path": "bpe.json"}
    if "nmt" in kind:
        data["output_tokenizer_path"] = "bpe.json"
    section = {"kind": kind, **more}
    return check({"name": "spelling", "task": {"kind": TASKS[kind]}, "data": data, "model": section}).model


def faults(kind: str, **more: Any) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        model(kind, **more)
    return {each.key: f"{each.problem} {each.hint}" for each in caught.value.faults}


@pytest.mark.parametrize("kind", list(TASKS))
def test_defaults_are_the_sizes_of_the_study(kind: str) -> None:
    found = model(kind)
    if kind != "tokenization_repair_plus":
        assert (found.hidden_dim, found.heads, getattr(found, "feed_forward", 1024)) == (512, 8, 1024)
    assert found.dropout == 0.1


@pytest.mark.parametrize("kind", sorted(set(TASKS) - {"tokenization_repair_plus"}))
def test_a_hidden_dim_that_is_odd_or_not_divisible_by_the_heads_is_refused(kind: str) -> None:
    assert "3 attention heads" in faults(kind, hidden_dim=64, num_heads=3)["model.hidden_dim"]
    assert "even" in faults(kind, hidden_dim=63, num_heads=1)["model.hidden_dim"]


def test_there_must_be_three_class_weights() -> None:
    assert "three" in faults("tokenization_repair", class_weights=[1, 5])["model.class_weights"]
    assert model("tokenization_repair", class_weights=[1, 2, 3]).class_weights == (1.0, 2.0, 3.0)
