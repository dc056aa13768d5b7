"""A pretrained encoder with a head for classification, as Hugging Face's transformers builds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from toolkit.nlp.encoder import network_of, settings_of
from toolkit.nlp.hub import no_model
from toolkit.workloads.text_classification.config import Pretrained as PretrainedConfig
from toolkit.workloads.text_classification.models.cls_pooling import keep_first_token


class Pretrained(nn.Module):
    """Scores of each class for a batch of token ids: AutoModelForSequenceClassification behind one call.

    Raises DataError where there is no such model, or one that cannot classify.
    """

    def __init__(self, config: PretrainedConfig, *, labels: Sequence[str], pad_id: int, **_: Any) -> None:
        super().__init__()
        self._pad_id = pad_id
        self.network = _load(config, labels)
        if config.last_layer == "first_token":
            keep_first_token(self.network, config.path)

    @property
    def settings(self) -> dict[str, Any]:
        """Return the model's config.json."""
        found: dict[str, Any] = self.network.config.to_dict()
        return found

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map token ids [B, L] to scores [B, C]; padding is at the end of a row."""
        scores: torch.Tensor = self.network(
            input_ids=tokens, attention_mask=(tokens != self._pad_id).long(), return_dict=True
        ).logits
        return scores


def _load(config: PretrainedConfig, labels: Sequence[str]) -> Any:
    from transformers import AutoModelForSequenceClassification

    try:
        names = dict(enumerate(labels))
        codes = {label: code for code, label in names.items()}
        settings = settings_of(
            config.path, layers=config.layers, dropout=config.dropout, key="model.layers",
            id2label=names, label2id=codes,
        )  # fmt: skip
        return network_of(AutoModelForSequenceClassification, config.path, settings)
    except (OSError, ValueError) as error:
        raise no_model(config.path, error) from error
