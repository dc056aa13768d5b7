"""The `model` sections: detection, correction, repair of white space."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from toolkit.config.fields import option
from toolkit.data.sources.named_files import violation_of
from toolkit.errors import DataError
from toolkit.workload import ModelSection, Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionModel(ModelSection):
    """Common keys of all models."""

    kind: str = option("")
    hidden_dim: int = option(512, minimum=2)
    """Size of the hidden states: even, and divisible by the number of heads."""
    num_heads: int | None = option(None, minimum=1)
    """Attention heads of each layer; null: hidden_dim / 64."""
    dropout: float = option(0.1, minimum=0, maximum=1)
    """Dropout of each sub-layer."""

    @property
    def heads(self) -> int:
        return self.num_heads or max(self.hidden_dim // 64, 1)

    def sizes(self, data: Any, meta: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
        yield "values of a vector (model.hidden_dim)", self.hidden_dim
        if tokens := meta.get("vocabulary_size") or _tokens(data):
            yield "tokens of the vocabulary", int(tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer(AttentionModel):
    """Common keys of the models made of transformer layers."""

    feed_forward_dim: int | None = option(None, minimum=1)
    """Size of the feed-forward sub-layers; null: twice hidden_dim."""

    @property
    def feed_forward(self) -> int:
        return self.feed_forward_dim or 2 * self.hidden_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionTransformer(Transformer):
    """A transformer over tokens; states are averaged over each word, or over the text."""

    SHAPES: ClassVar[tuple[str, ...]] = ("hidden_dim", "feed_forward", "num_layers", "word_features")
    kind: str = option("transformer")
    num_layers: int = option(6, minimum=1)
    """Encoder layers."""
    word_features: bool = option(True)
    """Whether the model reads the 13 features of each piece of a word."""
    max_length: int = option(512, minimum=8)
    """Longest text in tokens, special tokens included; longer ones are read in windows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionGraph(AttentionModel):
    """A graph network over tokens and words, with attention along each type of edge."""

    SHAPES: ClassVar[tuple[str, ...]] = ("hidden_dim", "num_layers", "word_features")
    kind: str = option("graph")
    num_layers: int = option(6, minimum=1)
    """Encoder layers."""
    word_features: bool = option(True)
    """Whether word nodes start from their 13 features."""
    word_fully_connected: bool = option(True)
    """Whether each word attends to all other words of its text."""
    token_fully_connected: bool = option(False)
    """Whether each token attends to all tokens of its text, not only of its word."""
    max_length: int = option(512, minimum=8)
    """Longest text in tokens, special tokens included; longer ones are read in windows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionNMT(Transformer):
    """Sequence to sequence: an encoder reads the text, a decoder writes the corrected text."""

    SHAPES: ClassVar[tuple[str, ...]] = (
        "hidden_dim",
        "feed_forward",
        "num_encoder_layers",
        "num_decoder_layers",
    )
    kind: str = option("nmt")
    num_encoder_layers: int = option(6, minimum=1)
    """Encoder layers."""
    num_decoder_layers: int = option(6, minimum=1)
    """Decoder layers."""
    max_input_length: int = option(512, minimum=8)
    """Longest input in tokens, special tokens included; longer texts are corrected in windows."""
    max_output_length: int = option(512, minimum=2)
    """Longest output in tokens, special tokens included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionWordsNMT(CorrectionNMT):
    """Reads the text, writes all of its words at once, each separately."""

    SHAPES: ClassVar[tuple[str, ...]] = (*CorrectionNMT.SHAPES, "use_sequence_context")
    kind: str = option("words_nmt")
    use_sequence_context: bool = option(False)
    """Whether a written word also attends to the whole text."""
    max_output_length: int = option(1024, minimum=2)
    """Longest output in training, in tokens of all words; longer samples are left out."""
    max_word_length: int = option(32, minimum=2)
    """Longest output of one word, in tokens, the end included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizationRepair(Transformer):
    """A transformer over characters: keep each, insert a space before it, or delete it."""

    SHAPES: ClassVar[tuple[str, ...]] = (
        "hidden_dim",
        "feed_forward",
        "num_encoder_layers",
        "final_norm",
        "head_layers",
    )
    kind: str = option("tokenization_repair")
    num_encoder_layers: int = option(6, minimum=1)
    """Encoder layers."""
    activation: str = option("relu", choices=("relu", "gelu"))
    """Activation function of the feed-forward sub-layers."""
    final_norm: bool = option(True)
    """Whether a layer norm follows the last layer."""
    head_layers: int = option(2, minimum=1, maximum=2)
    """Linear layers of the classification head."""
    class_weights: tuple[float, ...] = option((1.0, 5.0, 5.0), above=0)
    """Loss weights of keep, insert and delete."""
    max_length: int = option(512, minimum=8)
    """Longest text in characters, special tokens included; longer ones are repaired in windows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizationRepairPlus(ModelSection):
    """Detection, and optionally correction, on the states of a model that repairs white space.

    The new layers have that model's hidden_dim and heads.
    """

    SHAPES: ClassVar[tuple[str, ...]] = ("num_word_layers", "num_sec_layers", "word_features")
    kind: str = option("tokenization_repair_plus")
    repair_run: str = option(path=True, run=True)
    """Folder of a finished run of `tokenization_repair`."""
    fix_tokenization_repair: bool = option(True)
    """Whether the model of repair_run is frozen."""
    feed_forward_dim: int | None = option(None, minimum=1)
    """Size of the feed-forward sub-layers; null: twice hidden_dim."""
    num_word_layers: int = option(6, minimum=1)
    """Encoder layers over the words."""
    num_sec_layers: int = option(0, minimum=0)
    """Decoder layers that write corrected words; 0: detection only."""
    word_features: bool = option(True)
    """Whether the model reads the 13 features of each piece of a word."""
    dropout: float = option(0.1, minimum=0, maximum=1)
    """Dropout of each sub-layer."""
    max_length: int = option(514, minimum=8)
    """Longest text in characters, special tokens included."""
    sec_max_output_length: int = option(2048, minimum=2)
    """Longest output in tokens of all words; words of longer texts are not learnt."""
    max_word_length: int = option(32, minimum=2)
    """Longest output of one word, in tokens, the end included."""

    def violations(self, experiment: Any, *, coming: Mapping[Path, Any] | None = None) -> Iterator[Violation]:
        from toolkit.workloads.spelling.repair_run import check_repair_run

        return violation_of("model.repair_run", check_repair_run, experiment, coming)

    def files(self) -> Iterator[tuple[str, Path]]:
        from toolkit.training.warm_start.find import find_weights

        yield "model.repair_run", find_weights("model.repair_run", self.repair_run).file


def _tokens(data: Any) -> int | None:
    """Return the vocabulary size of the tokenizer of a data section; None if it cannot be read."""
    # Imported late, because it is slow.
    from toolkit.workloads.spelling.tokenizers.tokenizer import load_tokenizer

    try:
        return len(load_tokenizer(Path(data.tokenizer_path)))
    except DataError:
        # The error is reported elsewhere.
        return None
