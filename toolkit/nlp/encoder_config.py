"""The config.json of a pretrained encoder: the longest samples, and the sizes of its weights.

Imports nothing slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.data.sources.named_files import violation_of
from toolkit.errors import DataError
from toolkit.nlp.hub import check_local_model, check_weights
from toolkit.nlp.tokenizers.tokenizer_files import read_json_object
from toolkit.workload import Violation

#: Architectures with a table of positions, by `model_type`. Those with relative positions have no limit,
#: whatever their files contain; all other settings are left to the model itself.
_PLAIN = {
    "albert", "bert", "big_bird", "convbert", "distilbert", "electra", "ernie", "flaubert",
    "layoutlm", "megatron-bert", "mobilebert", "nystromformer", "rembert", "roc_bert", "roformer",
    "splinter", "squeezebert", "xlm", "yoso",
}  # fmt: skip
#: Their first position is the one behind the padding token's number, so that the table holds fewer.
_BEHIND_PADDING = {
    "camembert", "data2vec-text", "ibert", "lilt", "longformer", "luke", "markuplm", "mpnet", "roberta",
    "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod",
}  # fmt: skip
#: The padding token's number where the file names none: that of these models.
_PADDING = 1
#: The names of the number of layers; most architectures have the first one.
_LAYERS = ("num_hidden_layers", "n_layers")
#: What the shapes of an encoder's weights depend on.
_SIZES = ("model_type", "hidden_size", "intermediate_size", "vocab_size", "num_hidden_layers")


def usable_positions(settings: dict[str, Any]) -> int | None:
    """The most tokens that a model reads at once, by its config.json; None where that has no limit here."""
    kind, most = settings.get("model_type"), settings.get("max_position_embeddings")
    if not isinstance(most, int) or isinstance(most, bool):
        return None
    if kind in _BEHIND_PADDING:
        padding = settings.get("pad_token_id", _PADDING)
        return most - padding - 1 if isinstance(padding, int) else None
    return most if kind in _PLAIN else None


def check_encoder(
    key: str, path: str, data: Any, keys: Sequence[str], layers: Mapping[str, int | None], more: str = ""
) -> Iterator[Violation]:
    """Find what is wrong with an encoder: no such model, too long samples, or layers that it does not have.

    key      the option with its folder
    keys     of the data section: most tokens of what the encoder reads
    layers   how many of its layers are kept, by option; None: all
    more     what else can be done about long samples
    """
    yield from violation_of(key, check_local_model, path, "config.json")
    yield from violation_of(key, check_weights, path)
    settings = _settings_in(Path(path))
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


def check_longest(settings: dict[str, Any], longest: int, path: str, key: str) -> None:
    """Raise DataError where a sample is longer than a loaded model reads: of one on a hub it shows only then.

    settings   of the model, as its config.json has them
    key        the option that limits samples, for the message
    """
    most = usable_positions(settings)
    if most is not None and longest > most:
        raise DataError(
            f"a sample has {longest} tokens, but the model in {path} reads {most} at most: "
            f"set {key} to {most} or fewer"
        )


def encoder_difference(own: tuple[str, int | None], other: tuple[str, int | None]) -> str:
    """Why the weights of one encoder do not fit another; empty where they may.

    own, other   folder of the encoder, and how many of its layers are kept; None: all
    """
    here, there = _sizes(*own), _sizes(*other)
    for name in _SIZES:
        if name in here and name in there and here[name] != there[name]:
            return f"its encoder {other[0]} has {name} {there[name]}, {own[0]} has {here[name]}"
    return ""


def _sizes(path: str, layers: int | None) -> Mapping[str, Any]:
    """Return the known sizes of an encoder; none for one on a hub."""
    settings = _settings_in(Path(path))
    return settings | {"num_hidden_layers": layers} if settings and layers is not None else settings


def _settings_in(folder: Path) -> dict[str, Any]:
    """The encoder's config.json; empty where it is missing or on a hub, which others report."""
    try:
        return read_json_object(folder / "config.json")
    except DataError:
        return {}
