"""Numbers of parameters of the models at the sizes of the study (reference, section 5.1), within 2 %."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import nn

from tests.toolkit.workloads.spelling.models.making import built
from toolkit.workloads.spelling.config.models import TokenizationRepair

BPE, CHARACTERS = 10_000, 99
#: Sizes of the repair model in the reference's plus models. Its script trains a different one.
RELEASED: dict[str, Any] = {
    "feed_forward_dim": 2048, "activation": "gelu", "final_norm": False, "head_layers": 1,
}  # fmt: skip
REPAIR, PLUS = "tokenization_repair", "tokenization_repair_plus"
#: Millions of parameters by the reference's table, the kind of the model, and keys of its section.
MODELS: dict[str, tuple[float, str, Mapping[str, Any]]] = {
    "transformer": (18.0, "transformer", {"word_features": False}),
    "transformer with features": (18.5, "transformer", {}),
    "graph": (24.3, "graph", {"word_features": False}),
    "graph with features": (24.4, "graph", {}),
    "nmt": (41.8, "nmt", {}),
    "nmt from characters": (49.3, "nmt", {"num_encoder_layers": 12}),
    "words nmt": (41.8, "words_nmt", {}),
    "repair": (12.9, REPAIR, {}),
    "released repair, small": (9.5, REPAIR, {"num_encoder_layers": 3, **RELEASED}),
    "released repair, medium": (19.0, REPAIR, RELEASED),
    "released repair, large": (37.9, REPAIR, {"num_encoder_layers": 12, **RELEASED}),
    "plus detection": (32.0, PLUS, {"num_sec_layers": 0}),
    "plus detection and correction": (62.5, PLUS, {"num_sec_layers": 6}),
}
#: Models whose third digit differs from the table.
BUILT = {"graph with features": 24.3, "plus detection": 32.4, "plus detection and correction": 62.7}


def millions(model: nn.Module, trained: bool = False) -> float:
    weights = (weight for weight in model.parameters() if weight.requires_grad or not trained)
    return sum(weight.numel() for weight in weights) / 1e6


def meta(kind: str, keys: Mapping[str, Any], characters: bool, repair: Mapping[str, Any] = RELEASED) -> Any:
    """Build a model without memory for the weights; characters: whether it reads these, instead of BPE."""
    keys = {"repair_run": "runs/repair", **keys} if kind == PLUS else keys
    sizes = {"vocabulary_size": CHARACTERS if characters else BPE, "output_vocabulary_size": BPE}
    with torch.device("meta"):
        return built(kind, keys, **sizes, repair=TokenizationRepair(**repair))


@pytest.mark.parametrize("name", list(MODELS))
def test_number_of_parameters_is_that_of_the_study(name: str) -> None:
    wanted, kind, keys = MODELS[name]
    found = millions(meta(kind, keys, kind in (REPAIR, PLUS) or "characters" in name))
    assert found == pytest.approx(wanted, rel=0.02)
    assert round(found, 1) == BUILT.get(name, wanted)


def test_a_fixed_repair_model_leaves_13_million_to_be_trained() -> None:
    """13.4, rounded in the table: 12.6 in the layers, 0.3 in the head, 0.5 in the mix with features."""
    assert round(millions(meta(PLUS, {}, True), trained=True)) == 13


def test_plus_model_has_the_sizes_of_its_repair_model() -> None:
    """With the model that the script trains, there are 6.1 million fewer than with the released one."""
    assert millions(meta(PLUS, {}, True, repair={})) == pytest.approx(32.3 - 19.0 + 12.9, abs=0.15)
