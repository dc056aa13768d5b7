"""The config.json of a pretrained encoder: the longest samples, and the sizes of its weights.

Imports nothing slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.data.sources.named_files import violation_of
from toolkit.errors import DataError
from toolkit.files import read_object
from toolkit.nlp.hub import check_local_model, check_weights
from toolkit.nlp.tokenizers.tokenizer_files import vocabulary_size
from toolkit.workload import Violation

#: Architectures with a table of positions, by `model_type`. Those with relative positions have no limit,
#: even if their files name one; all other settings are left to the model itself.
_PLAIN = {
    "albert", "bert", "big_bird", "convbert", "distilbert", "electra", "ernie", "flaubert",
    "layoutlm", "megatron-bert", "mobilebert", "nystromformer", "rembert", "roc_bert", "roformer",
    "splinter", "squeezebert", "xlm", "yoso",
}  # fmt: skip
#: Their first position comes after the padding token's number, so that fewer positions are usable.
_AFTER_PADDING = {
    "camembert", "data2vec-text", "ibert", "lilt", "longformer", "luke", "markuplm", "mpnet", "roberta",
    "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod",
}  # fmt: skip
#: Architectures that mix the padding after a text into its vectors, which then depend on the batch.
_MIXES_PADDING = ("fnet", "nystromformer", "yoso")
#: The padding token's number in these models, if the file names none.
_PADDING = 1
#: The names of the number of layers; most architectures have the first one.
_LAYERS = ("num_hidden_layers", "n_layers")
#: What the shapes of an encoder's weights depend on.
_SIZES = ("model_type", "hidden_size", "intermediate_size", "vocab_size", "num_hidden_layers")


def usable_positions(settings: dict[str, Any]) -> int | None:
    """The most tokens that a model reads at once, by its config.json; None if no limit is known."""
    kind, most = settings.get("model_type"), settings.get("max_position_embeddings")
    if not isinstance(most, int) or isinstance(most, bool):
        return None
    if kind in _AFTER_PADDING:
        padding = settings.get("pad_token_id", _PADDING)
        return most - padding - 1 if isinstance(padding, int) else None
    return most if kind in _PLAIN else None


def padding_problem(settings: Mapping[str, Any], path: str) -> str:
    """Why a model with this config.json cannot read texts in batches; empty if it can."""
    kind = settings.get("model_type")
    mixes = kind in _MIXES_PADDING
    return f"the model in {path} is a {kind}, whose vectors depend on the padding of a batch" if mixes else ""


def check_encoder(
    path: str,
    data: Any,
    keys: Sequence[str],
    layers: Mapping[str, int | None],
    tokenizer: str,
    more: str = "",
) -> Iterator[Violation]:
    """Find what is wrong with the encoder in model.path: no such model, one that mixes padding into the
    vectors of texts, too long samples, layers or tokens it does not have.

    keys       options of the data section that limit the tokens that the encoder reads
    layers     number of its layers that are kept, by option; None: all
    tokenizer  option of the data section with the folder of the tokenizer
    more       further advice about long samples
    """
    yield from violation_of("model.path", check_local_model, path, "config.json")
    yield from violation_of("model.path", check_weights, path)
    settings = settings_in(path)
    if problem := padding_problem(settings, path):
        yield Violation(key=("model", "path"), problem=problem, hint="a model such as BERT")
    most = usable_positions(settings)
    for name in keys:
        if most is not None and getattr(data, name) > most:
            problem = f"found {getattr(data, name)}, but the model in {path} reads {most} tokens at most"
            yield Violation(key=("data", name), problem=problem, hint=f"{most} or fewer{more}")
    present = next((settings[name] for name in _LAYERS if isinstance(settings.get(name), int)), None)
    for option, kept in layers.items():
        if present is not None and kept is not None and kept > present:
            problem = f"found {kept}, but the model in {path} has {present} layers"
            yield Violation(key=tuple(option.split(".")), problem=problem, hint="fewer, or null for all")
    folder, rows = getattr(data, tokenizer), settings.get("vocab_size")
    # The model's own tokenizer is not read, because a large one takes long.
    is_other = folder is not None and Path(folder) != Path(path)
    tokens = vocabulary_size(Path(folder)) if is_other else 0
    if isinstance(rows, int) and tokens > rows:
        problem = f"{folder} has {tokens:,} tokens, but model.path ({path}) has vectors for {rows:,}"
        yield Violation(key=("data", tokenizer), problem=problem, hint="usually ${model.path}")


def check_longest(settings: dict[str, Any], longest: int, path: str, key: str) -> None:
    """Raise DataError if a sample is longer than a loaded model reads; for a hub's model, known only then.

    settings   the content of the model's config.json
    key        the option that limits samples, for the message
    """
    most = usable_positions(settings)
    if most is not None and longest > most:
        raise DataError(
            f"a sample has {longest} tokens, but the model in {path} reads {most} at most: "
            f"set {key} to {most} or fewer"
        )


def encoder_difference(own: tuple[str, int | None], other: tuple[str, int | None]) -> str:
    """Why the weights of one encoder do not fit another; empty if they may fit.

    own, other   folder of the encoder, and number of its layers that are kept; None: all
    """
    here, there = _sizes(*own), _sizes(*other)
    for name in _SIZES:
        if name in here and name in there and here[name] != there[name]:
            return f"its encoder {other[0]} has {name} {there[name]}, {own[0]} has {here[name]}"
    return ""


def _sizes(path: str, layers: int | None) -> Mapping[str, Any]:
    """Return the known sizes of an encoder; none for one on a hub."""
    settings = settings_in(path)
    return settings | {"num_hidden_layers": layers} if settings and layers is not None else settings


def settings_in(path: str) -> dict[str, Any]:
    """The encoder's config.json; empty if it is missing, which other checks report, or on a hub."""
    return read_object(Path(path) / "config.json")
