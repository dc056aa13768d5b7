"""Models of the spelling study: detection, correction, repair of white space."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.config.options import option

#: Length of the vectors of one attention head, where their number is not given.
_HEAD_DIM = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionModel:
    """What all these models have in common."""

    kind: str = option("")
    """This model."""
    hidden_dim: int = option(512, minimum=2)
    """Length of a vector between the layers; an even multiple of the heads."""
    num_heads: int | None = option(None, minimum=1)
    """Heads of attention in each layer; null: one for each 64 of hidden_dim."""
    dropout: float = option(0.1, minimum=0, maximum=1)
    """Share of what each part of a layer adds that training drops."""

    @property
    def heads(self) -> int:
        """Heads of attention in each layer."""
        return self.num_heads or max(self.hidden_dim // _HEAD_DIM, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer(AttentionModel):
    """What those of transformer layers have in common."""

    feed_forward_dim: int | None = option(None, minimum=1)
    """Length of the vector within a layer's feed-forward part; null: twice hidden_dim."""

    @property
    def feed_forward(self) -> int:
        """Length of the vector within a layer's feed-forward part."""
        return self.feed_forward_dim or 2 * self.hidden_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionTransformer(Transformer):
    """A transformer over tokens, whose states are averaged over each word, or over the text."""

    kind: str = option("transformer")
    num_layers: int = option(6, minimum=1)
    """Layers of the encoder."""
    word_features: bool = option(True)
    """Whether the 13 features of each piece of a word are read beside its tokens."""
    max_length: int = option(512, minimum=8)
    """Tokens of a text, special ones included; a longer one is read in windows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionGraph(AttentionModel):
    """A graph network over tokens and words, with attention along each kind of edge."""

    kind: str = option("graph")
    num_layers: int = option(6, minimum=1)
    """Layers of attention along the edges."""
    word_features: bool = option(True)
    """Whether the nodes of words begin with their 13 features too."""
    word_fully_connected: bool = option(True)
    """Whether each word reads all others of its text."""
    token_fully_connected: bool = option(False)
    """Whether each token reads all others of its text, not those of its word alone."""
    max_length: int = option(512, minimum=8)
    """Tokens of a text, special ones included; a longer one is read in windows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionNMT(Transformer):
    """Sequence to sequence: reads the text, writes it anew."""

    kind: str = option("nmt")
    num_encoder_layers: int = option(6, minimum=1)
    """Layers that read."""
    num_decoder_layers: int = option(6, minimum=1)
    """Layers that write."""
    max_input_length: int = option(512, minimum=8)
    """Tokens that are read, special ones included; a longer text is corrected in windows."""
    max_output_length: int = option(512, minimum=2)
    """Tokens that are written, special ones included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionWordsNMT(Transformer):
    """Reads the text, writes all of its words at once, each by itself."""

    kind: str = option("words_nmt")
    num_encoder_layers: int = option(6, minimum=1)
    """Layers that read."""
    num_decoder_layers: int = option(6, minimum=1)
    """Layers that write."""
    use_sequence_context: bool = option(False)
    """Whether a word that is written also attends to the whole text, besides its own tokens."""
    max_input_length: int = option(512, minimum=8)
    """Tokens that are read, special ones included; a longer text is corrected in windows."""
    max_output_length: int = option(1024, minimum=2)
    """Tokens that training writes for all words of a text together; samples with more are left out."""
    max_word_length: int = option(32, minimum=2)
    """Tokens that decoding writes for one word, the end included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizationRepair(Transformer):
    """A transformer over characters: keep each, insert a space before it, or delete it."""

    kind: str = option("tokenization_repair")
    num_encoder_layers: int = option(6, minimum=1)
    """Layers of the encoder."""
    activation: str = option("relu", choices=("relu", "gelu"))
    """Function within the feed-forward parts."""
    final_norm: bool = option(True)
    """Whether the last states are normalised once more."""
    head_layers: int = option(2, minimum=1, maximum=2)
    """Linear layers from a state to the scores of the classes."""
    class_weights: tuple[float, ...] = option((1.0, 5.0, 5.0), above=0)
    """Weights of keep, insert and delete in the loss."""
    max_length: int = option(512, minimum=8)
    """Characters of a text, special ones included; a longer one is repaired in windows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizationRepairPlus:
    """Detection, and correction if wanted, on the states of a model that repairs white space.

    The new layers have that model's hidden_dim and heads.
    """

    kind: str = option("tokenization_repair_plus")
    repair_run: str = option(path=True)
    """Folder of a finished run of task `tokenization_repair`, whose model reads the characters."""
    fix_tokenization_repair: bool = option(True)
    """Whether that model stays as it is."""
    feed_forward_dim: int | None = option(None, minimum=1)
    """Length of the vector within a feed-forward part of the new layers; null: twice hidden_dim."""
    num_word_layers: int = option(6, minimum=1)
    """Layers over the words."""
    num_sec_layers: int = option(0, minimum=0)
    """Layers that write the corrected words, 6 in the study; 0: detection alone."""
    word_features: bool = option(True)
    """Whether the 13 features of each piece of a word are read beside its characters."""
    dropout: float = option(0.1, minimum=0, maximum=1)
    """Share of what each part of the new layers adds that training drops."""
    max_length: int = option(514, minimum=8)
    """Characters of a text, special ones included."""
    sec_max_output_length: int = option(2048, minimum=2)
    """Tokens that are written for all words of a text together; one with more is not learnt to be written."""
    max_word_length: int = option(32, minimum=2)
    """Tokens that decoding writes for one word, the end included."""
