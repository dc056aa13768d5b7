"""A pretrained encoder with a head for classification, as Hugging Face's transformers builds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from toolkit.config.kinds import Pretrained as PretrainedConfig
from toolkit.data.hub import no_model
from toolkit.errors import DataError

#: Names that configurations use for the dropout of embeddings, layers and head.
_DROPOUTS = (
    "hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout", "dropout",
    "attention_dropout", "seq_classif_dropout", "hidden_dropout", "embd_pdrop", "resid_pdrop", "attn_pdrop",
)  # fmt: skip


class Pretrained(nn.Module):
    """Scores of each class for a batch of token ids: AutoModelForSequenceClassification behind one call.

    Raises DataError where there is no such model, or one that cannot classify.
    """

    def __init__(self, config: PretrainedConfig, *, labels: Sequence[str], pad_id: int, **_: Any) -> None:
        super().__init__()
        self._pad_id = pad_id
        self.network = _load(config, labels)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map token ids [B, L] to scores [B, C]; padding stands at the end of a row."""
        scores: torch.Tensor = self.network(
            input_ids=tokens, attention_mask=(tokens != self._pad_id).long(), return_dict=True
        ).logits
        return scores


def _load(config: PretrainedConfig, labels: Sequence[str]) -> Any:
    from transformers import AutoConfig, AutoModelForSequenceClassification
    from transformers.utils import logging

    # That the head is new, and that layers were left out, is what was asked for.
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        names = dict(enumerate(labels))
        codes = {label: code for code, label in names.items()}
        settings = AutoConfig.from_pretrained(config.path, id2label=names, label2id=codes)
        _keep_layers(settings, config)
        if config.dropout is not None:
            for name in _DROPOUTS:
                if hasattr(settings, name):
                    setattr(settings, name, config.dropout)
        return AutoModelForSequenceClassification.from_pretrained(config.path, config=settings)
    except (OSError, ValueError) as error:
        raise no_model(config.path, error) from error


def _keep_layers(settings: Any, config: PretrainedConfig) -> None:
    if config.layers is None:
        return
    # transformers maps this name to that of each architecture.
    present = getattr(settings, "num_hidden_layers", None)
    if present is None or config.layers > present:
        raise DataError(
            f"model.layers is {config.layers}, but the model in {config.path} has {present} layers; "
            "set it to at most that, or null for all"
        )
    settings.num_hidden_layers = config.layers
