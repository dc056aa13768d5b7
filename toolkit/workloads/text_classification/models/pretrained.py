"""A pretrained encoder with a head for classification, from Hugging Face's transformers."""

from __future__ import annotations

from collections.abc import Sequence
from types import MethodType
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from toolkit.errors import DataError
from toolkit.nlp.encoder import network_of, settings_of
from toolkit.nlp.hub import no_model
from toolkit.workloads.text_classification.config import Pretrained as PretrainedConfig
from toolkit.workloads.text_classification.config import head_problem, labels_of_head


class Pretrained(nn.Module):
    """Scores of each class for a batch of token ids, by AutoModelForSequenceClassification.

    Raises DataError if the model does not exist, cannot classify, reads padding, or has other labels.
    """

    def __init__(self, config: PretrainedConfig, *, labels: Sequence[str], pad_id: int, **_: Any) -> None:
        super().__init__()
        self._pad_id = pad_id
        self.network = _load(config, labels, pad_id)
        if config.last_layer == "first_token":
            keep_first_token(self.network, config.path)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map token ids [B, L] to scores [B, C]; padding is at the end of a row."""
        scores: torch.Tensor = self.network(
            input_ids=tokens, attention_mask=(tokens != self._pad_id).long(), return_dict=True
        ).logits
        return scores


def _load(config: PretrainedConfig, labels: Sequence[str], pad_id: int) -> Any:
    from transformers import AutoModelForSequenceClassification

    try:
        names = dict(enumerate(labels))
        codes = {label: code for code, label in names.items()}
        settings = settings_of(
            config.path, layers=config.layers, dropout=config.dropout, key="model.layers",
            id2label=names, label2id=codes, pad_token_id=pad_id,
        )  # fmt: skip
        if problem := head_problem(settings.to_dict(), config.path):
            raise DataError(f"{problem}: set model.path to a model such as BERT")
        return network_of(AutoModelForSequenceClassification, config.path, settings)
    except (OSError, ValueError) as error:
        raise no_model(config.path, error) from error
    except RuntimeError as error:
        # transformers names no cause if the sizes of a head differ.
        found = settings_of(config.path, layers=None, dropout=None, key="model.layers")
        own = labels_of_head(found.to_dict())
        if own in (None, len(labels)):
            raise
        raise DataError(
            f"the head of the model in {config.path} (model.path) has {own} labels, the data have "
            f"{len(labels)}: name a model without this head (transformers' AutoModel saves the encoder alone)"
        ) from error


def keep_first_token(network: Any, path: str) -> None:
    """Make the last layer of a BERT for sequence classification map [B, L, H] to [B, 1, H].

    Queries, the output of attention and the feed-forward part are five sixths of a layer's multiplications.
    The head reads only the first token, and the other tokens get no gradient there. Scores and gradients are
    therefore the same within rounding. Keys and values are still computed for all tokens.

    Weights keep their names. Raises DataError if the head of the architecture may read other tokens.
    """
    if network.config.model_type != "bert" or network.config.is_decoder:
        raise DataError(
            f"model.last_layer is first_token, which is for BERT, but the model in {path} is "
            f"{network.config.model_type}; set it to all"
        )
    attention = network.bert.encoder.layer[-1].attention
    attention.self.forward = MethodType(_attend, attention.self)
    attention.output.forward = MethodType(_add, attention.output)


def _attend(
    self: Any, hidden: torch.Tensor, *_: Any, attention_mask: torch.Tensor | None = None, **__: Any
) -> tuple[torch.Tensor, None]:
    """Attention of the first token [B, 1, H] to all tokens [B, L, H]."""
    size = self.attention_head_size
    states = functional.scaled_dot_product_attention(
        _heads(self.query(hidden[:, :1]), size),
        _heads(self.key(hidden), size),
        _heads(self.value(hidden), size),
        attn_mask=None if attention_mask is None else attention_mask[..., :1, :],
        dropout_p=self.dropout.p if self.training else 0.0,
        scale=self.scaling,
    )
    return states.transpose(1, 2).flatten(2), None


def _heads(states: torch.Tensor, size: int) -> torch.Tensor:
    """Reshape [B, L, H] to [B, heads, L, size]."""
    return states.view(*states.shape[:2], -1, size).transpose(1, 2)


def _add(self: Any, states: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
    added: torch.Tensor = type(self).forward(self, states, hidden[:, :1])
    return added
