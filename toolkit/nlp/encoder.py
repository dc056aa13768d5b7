"""A pretrained encoder of texts, as Hugging Face's transformers loads it, and vectors of its tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from toolkit.errors import DataError
from toolkit.nlp.encoder_config import padding_problem
from toolkit.nlp.hub import no_model

#: Names that configurations use for the dropout of embeddings, layers and head.
_DROPOUTS = (
    "hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout", "dropout",
    "attention_dropout", "seq_classif_dropout", "hidden_dropout", "embd_pdrop", "resid_pdrop", "attn_pdrop",
    "classifier_dropout_prob", "dropout_rate", "summary_first_dropout", "summary_last_dropout",
    "pooler_dropout", "embedding_dropout", "mlp_dropout", "resid_dropout", "embed_dropout",
)  # fmt: skip
#: Code in a model's folder is never executed; weights in a pickle are not opened.
SAFELY = {"trust_remote_code": False, "use_safetensors": True}


def settings_of(path: str, *, layers: int | None, dropout: float | None, key: str, **more: Any) -> Any:
    """The configuration of the model in a folder, with only its first layers and another dropout.

    key  the option that sets the number of layers, for the message. Raises DataError, OSError, ValueError.
    """
    from transformers import AutoConfig
    from transformers.utils import logging

    # transformers would warn about the new head and the left-out layers, which are intended.
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    settings = AutoConfig.from_pretrained(path, trust_remote_code=False, **more)
    if problem := padding_problem(settings.to_dict(), path):
        raise DataError(f"{problem}: choose a model such as BERT")
    if layers is not None:
        # transformers maps this name to that of each architecture.
        present = getattr(settings, "num_hidden_layers", None)
        if present is None or layers > present:
            raise DataError(
                f"{key} is {layers}, but the model in {path} has {present} layers; "
                "set it to at most that, or null for all"
            )
        settings.num_hidden_layers = layers
    for name in _DROPOUTS if dropout is not None else ():
        if hasattr(settings, name):
            setattr(settings, name, dropout)
    return settings


def network_of(kind: Any, path: str, settings: Any) -> Any:
    """Load a model with one of transformers' Auto classes; on the meta device, make one without values.

    Loads weights as float32, also from a half-precision file. Training in half precision needs float32
    weights too. Raises DataError if the file lacks weights of the encoder.
    """
    if torch.get_default_device().type == "meta":
        remote = SAFELY["trust_remote_code"]
        return kind.from_config(settings, dtype=torch.float32, trust_remote_code=remote)
    network, found = kind.from_pretrained(
        path, config=settings, dtype=torch.float32, output_loading_info=True, **SAFELY
    )
    # A new head is expected, and many encoders are saved without their pooler, which belongs to a head.
    inside = "" if network.base_model is network else f"{network.base_model_prefix}."
    for name, _ in network.named_parameters():
        if name in found["missing_keys"] and name.startswith(inside) and "pooler" not in name.split("."):
            others = ", ".join(sorted(found["unexpected_keys"])[:3]) or "nothing else"
            raise DataError(
                f"the weights of the model in {path} lack {name} of its encoder; there is {others}. Expected "
                "all that config.json describes, without a prefix such as module.: save the model with "
                "transformers' save_pretrained, or correct config.json"
            )
    return network


class Encoder(nn.Module):
    """An encoder without a head, with markers added to its table of tokens.

    vocabulary_size  number of tokens, markers included
    like             tokens from which the vectors of the last tokens are copied, in this order
    key              the option that sets the number of layers
    Raises DataError if the model cannot be loaded.
    """

    def __init__(
        self, path: str, *, layers: int | None, dropout: float | None, vocabulary_size: int,
        like: Sequence[int], pad_id: int, key: str,
    ) -> None:  # fmt: skip
        super().__init__()
        from transformers import AutoModel

        try:
            settings = settings_of(path, layers=layers, dropout=dropout, key=key)
            self.network: Any = network_of(AutoModel, path, settings)
        except (OSError, ValueError) as error:
            raise no_model(path, error) from error
        if getattr(self.network, "pooler", None) is not None:
            # Its weights would get no gradient: `pooled` pools the vectors.
            self.network.pooler = None
        self._pad_id = pad_id
        if vocabulary_size > self.network.get_input_embeddings().num_embeddings:
            self.network.resize_token_embeddings(vocabulary_size, mean_resizing=False)
        with torch.no_grad():
            table = self.network.get_input_embeddings().weight
            table[vocabulary_size - len(like) : vocabulary_size] = table[list(like)]

    @property
    def size(self) -> int:
        """Length of a vector."""
        return int(self.network.config.hidden_size)

    def mask(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return which of the tokens [B, L] are not padding."""
        kept: torch.Tensor = tokens != self._pad_id
        return kept

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map token ids [B, L], padded at the end of a row, to vectors [B, L, size]."""
        states: torch.Tensor = self.network(
            input_ids=tokens, attention_mask=self.mask(tokens).long(), return_dict=True
        ).last_hidden_state
        return states

    def pooled(self, tokens: torch.Tensor, pooling: str, spans: torch.Tensor | None = None) -> torch.Tensor:
        """Vectors of whole rows, [B, size].

        pooling  cls: the vector of the first token; anything else: the mean over tokens
        spans    [B, 2] the tokens of each row for the mean, as first and end; None: all
        """
        states: torch.Tensor = self(tokens)
        if pooling == "cls":
            return states[:, 0]
        kept = self.mask(tokens)
        if spans is not None:
            place = torch.arange(tokens.shape[1], device=tokens.device)
            kept = (place >= spans[:, :1]) & (place < spans[:, 1:])
        return mean_of(states, kept)

    def digest(self) -> str:
        """SHA-256 of the weights, by name."""
        digest = hashlib.sha256()
        for name, value in sorted(self.network.state_dict().items()):
            digest.update(name.encode())
            digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        return digest.hexdigest()


def mean_of(states: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """Mean of the states [B, L, H] that are kept [B, L]: [B, H]; zero if none are."""
    weights = kept.to(states.dtype).unsqueeze(-1)
    mean: torch.Tensor = (states * weights).sum(1) / weights.sum(1).clamp(min=1)
    return mean
