"""Models of the spelling study as the `model` section of an experiment."""

from __future__ import annotations

from typing import Any

import pytest

from toolkit import registry
from toolkit.config import check
from toolkit.errors import ConfigError
from toolkit.registry import task_kinds
from toolkit.workload import LOSS, TaskSpec
from toolkit.workloads.spelling.config import models as kinds
from toolkit.workloads.spelling.config import rules
from toolkit.workloads.text_classification.config import TextClassification, TextTable

MODELS = {
    each.__dataclass_fields__["kind"].default: each
    for each in (
        kinds.DetectionTransformer,
        kinds.DetectionGraph,
        kinds.CorrectionNMT,
        kinds.CorrectionWordsNMT,
        kinds.TokenizationRepair,
        kinds.TokenizationRepairPlus,
    )
}


@pytest.fixture(autouse=True)
def spelling_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register a task that takes all these models."""
    row = TaskSpec(
        kind="text_classification",
        config=TextClassification,
        data=TextTable,
        models={name: (cls, "nowhere:Model") for name, cls in MODELS.items()},  # type: ignore[misc]
        task="nowhere:Task",
        metrics=(LOSS,),
        rules=rules.RULES,
    )
    monkeypatch.setattr(registry, "_KINDS", {**task_kinds(), "text_classification": row})


def model(kind: str, **more: Any) -> Any:
    if kind == "tokenization_repair_plus":
        more.setdefault("repair_run", "/runs/repair")
    tree = {
        "name": "spelling",
        "task": {"kind": "text_classification"},
        "data": {"path": "texts.tsv"},
        "model": {"kind": kind, **more},
    }
    return check(tree).model


def faults(kind: str, **more: Any) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        model(kind, **more)
    return {each.key: f"{each.problem} {each.hint}" for each in caught.value.faults}


def test_the_six_models_have_different_names() -> None:
    assert len(MODELS) == 6


@pytest.mark.parametrize("kind", list(MODELS))
def test_defaults_are_the_sizes_of_the_study(kind: str) -> None:
    found = model(kind)
    if kind != "tokenization_repair_plus":
        assert (found.hidden_dim, found.heads, getattr(found, "feed_forward", 1024)) == (512, 8, 1024)
    assert found.dropout == 0.1


@pytest.mark.parametrize("kind", sorted(set(MODELS) - {"tokenization_repair_plus"}))  # type: ignore[type-var]
def test_a_hidden_dim_that_is_odd_or_not_divisible_by_the_heads_is_refused(kind: str) -> None:
    assert "3 attention heads" in faults(kind, hidden_dim=64, num_heads=3)["model.hidden_dim"]
    assert "even" in faults(kind, hidden_dim=63, num_heads=1)["model.hidden_dim"]


def test_there_must_be_three_class_weights() -> None:
    assert "three" in faults("tokenization_repair", class_weights=[1, 5])["model.class_weights"]
    assert model("tokenization_repair", class_weights=[1, 2, 3]).class_weights == (1.0, 2.0, 3.0)
