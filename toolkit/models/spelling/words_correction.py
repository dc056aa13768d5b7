"""Correction of all words at once: each is written by itself, from the states of its own tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from toolkit.config.kinds.spelling_models import CorrectionWordsNMT as Config
from toolkit.models.spelling.batches import WordsCorrectionBatch
from toolkit.models.spelling.decoder import Context, Decoder, key_mask
from toolkit.models.spelling.embedding import TokenEmbedding
from toolkit.models.spelling.layers import Encoder
from toolkit.models.spelling.word_blocks import block_causal, block_cross, block_positions, blocks_of
from toolkit.models.spelling.writing import DecoderModel


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsReading:
    """A batch that was read: a language model of one sequence for each word.

    texts    [N] text of each word
    numbers  [N] which word of its text it is
    """

    model: DecoderModel
    texts: torch.Tensor
    numbers: torch.Tensor


class CorrectionWordsNMT(nn.Module):
    """Encoder over the text, decoder over its words.

    In training a text's words stand side by side in one sequence. None of them can read another one, neither
    what it says nor its input tokens, but for what the encoder's states say. Positions of a word's output
    count from its first input token. With sequence context a further attention reads the whole text.
    """

    def __init__(
        self, config: Config, *, vocabulary_size: int, output_vocabulary_size: int | None = None, **_: object
    ) -> None:
        """output_vocabulary_size: that of the input if not given."""
        super().__init__()
        size = config.hidden_dim
        self._with_text = config.use_sequence_context
        self.embedding = TokenEmbedding(vocabulary_size, size, config.dropout)
        self.encoder = Encoder(
            config.num_encoder_layers, size, config.heads, config.feed_forward, config.dropout
        )
        self.decoder = Decoder(
            output_vocabulary_size or vocabulary_size, size, config.num_decoder_layers, config.heads,
            config.feed_forward, config.dropout, contexts=2 if self._with_text else 1,
        )  # fmt: skip

    def forward(self, rows: torch.Tensor, batch: WordsCorrectionBatch) -> torch.Tensor:
        """Scores [b, T, V] of what follows each token that the decoder reads, for these rows [b]."""
        batch = batch.take(rows)
        assert batch.targets is not None
        assert batch.target_words is not None
        states = self._states(batch)
        contexts = [Context(states=states, mask=block_cross(batch.target_words, batch.words))]
        if self._with_text:
            contexts.append(Context(states=states, mask=key_mask(batch.lengths, batch.tokens.shape[1])))
        scores: torch.Tensor = self.decoder(
            batch.targets,
            contexts,
            mask=block_causal(batch.target_words),
            positions=block_positions(batch.target_words, batch.words),
        )
        return scores

    def reading(self, batch: WordsCorrectionBatch) -> WordsReading:
        """The batch, read; each word is a sequence of its own, so that those that have ended cost nothing."""
        states, blocks = self._states(batch), blocks_of(batch.words)
        contexts = [Context(states=blocks.gather(states), mask=blocks.mask)]
        if self._with_text:
            mask = key_mask(batch.lengths, batch.tokens.shape[1])
            contexts.append(Context(states=states[blocks.texts], mask=mask[blocks.texts]))
        model = DecoderModel(self.decoder, contexts, blocks.first)
        return WordsReading(model=model, texts=blocks.texts, numbers=blocks.numbers)

    def _states(self, batch: WordsCorrectionBatch) -> torch.Tensor:
        states: torch.Tensor = self.encoder(self.embedding(batch.tokens), batch.real)
        return states
