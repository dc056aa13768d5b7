"""A sample that is longer than a pretrained encoder can read is refused before anything is started."""

from __future__ import annotations

from typing import Any

import pytest

from toolkit.nlp.encoder_config import usable_positions


def of(kind: str, most: Any = 514, **more: Any) -> dict[str, Any]:
    return {"model_type": kind, "max_position_embeddings": most, **more}


@pytest.mark.parametrize(
    "settings, most",
    [
        (of("bert", 512), 512),
        (of("bert", 512, pad_token_id=0), 512),
        (of("roberta"), 512),
        (of("roberta", pad_token_id=1), 512),
        (of("xlm-roberta", pad_token_id=3), 510),
        (of("t5", 512), None),  # relative positions
        (of("modernbert", 8192), None),
        (of("bert", None), None),
        (of("bert", "512"), None),
        (of("roberta", pad_token_id=None), None),
        ({}, None),
    ],
)
def test_usable_positions_are_read_from_the_config(settings: dict[str, Any], most: int | None) -> None:
    assert usable_positions(settings) == most


@pytest.mark.slow
def test_a_roberta_accepts_exactly_the_usable_positions() -> None:
    import torch
    from transformers import RobertaConfig, RobertaModel

    config = RobertaConfig(
        vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=1, intermediate_size=4,
        max_position_embeddings=12,
    )  # fmt: skip
    most = usable_positions(config.to_dict())
    assert most is not None
    model = RobertaModel(config).eval()
    model(torch.full((1, most), 5))
    with pytest.raises((IndexError, RuntimeError)):
        model(torch.full((1, most + 1), 5))
