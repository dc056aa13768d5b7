"""The runs of the spelling study, as the reference's table has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the reference's table of scripts, where our keys are those that it means, with our epochs."""

    script: str
    approach: str
    names: tuple[str, ...]
    nodes: int
    gpus: int
    batch_max_length: int
    epochs: int
    model: Mapping[str, Any]


def ablated(name: str) -> tuple[str, str]:
    return f"{name}_features_True", f"{name}_features_False"


TABLE = [
    Row(
        script="sed_words", approach="gnn", names=ablated("sed_words_gnn"),
        nodes=2, gpus=8, batch_max_length=98304, epochs=20, model={"kind": "graph", "num_layers": 6},
    ),
    Row(
        script="sed_words", approach="transformer", names=ablated("sed_words_transformer"),
        nodes=2, gpus=8, batch_max_length=98304, epochs=20, model={"kind": "transformer", "num_layers": 6},
    ),
    # The reference forgets how many nodes the second of these takes.
    Row(
        script="sed_sequence", approach="gnn", names=ablated("sed_sequence_gnn"),
        nodes=3, gpus=12, batch_max_length=98304, epochs=20, model={"kind": "graph", "num_layers": 6},
    ),
    Row(
        script="sed_sequence", approach="transformer", names=ablated("sed_sequence_transformer"),
        nodes=2, gpus=8, batch_max_length=98304, epochs=20, model={"kind": "transformer", "num_layers": 6},
    ),
    Row(
        script="sec_nmt", approach="transformer", names=("transformer_sec_nmt",),
        nodes=3, gpus=12, batch_max_length=32768, epochs=10,
        model={"kind": "nmt", "num_encoder_layers": 6, "num_decoder_layers": 6},
    ),
    Row(
        script="sec_nmt", approach="transformer_with_tokenization_repair",
        names=("transformer_sec_with_tokenization_repair_nmt",),
        nodes=4, gpus=16, batch_max_length=32768, epochs=4,
        model={"kind": "nmt", "num_encoder_layers": 12, "num_decoder_layers": 6},
    ),
    Row(
        script="sec_words_nmt", approach="transformer", names=("transformer_sec_words_nmt",),
        nodes=4, gpus=16, batch_max_length=32768, epochs=10,
        model={"kind": "words_nmt", "num_encoder_layers": 6, "num_decoder_layers": 6},
    ),
    Row(
        script="tokenization_repair", approach="encoder_only", names=("transformer_encoder_only",),
        nodes=2, gpus=8, batch_max_length=98304, epochs=5,
        model={"kind": "tokenization_repair", "num_encoder_layers": 6},
    ),
    Row(
        script="tokenization_repair_plus", approach="plus_sed", names=("tokenization_repair_plus_sed",),
        nodes=3, gpus=12, batch_max_length=98304, epochs=5, model={"num_word_layers": 6, "num_sec_layers": 0},
    ),
    Row(
        script="tokenization_repair_plus", approach="plus_sed_plus_sec",
        names=("tokenization_repair_plus_sed_plus_sec",),
        nodes=5, gpus=20, batch_max_length=32768, epochs=4, model={"num_word_layers": 6, "num_sec_layers": 6},
    ),
]  # fmt: skip
IDS = [f"{row.script}-{row.approach}" for row in TABLE]


#: Finetuned run -> the one whose weights it begins with.
SOURCES = {
    **{
        f"finetune_{task}{suffix}": f"{task}_{approach}_features_True"
        for task in ("sed_words", "sed_sequence")
        for approach, suffix in (("gnn", ""), ("transformer", "_transformer"))
    },
    "finetune_sec_nmt_transformer": "transformer_sec_nmt",
    "finetune_sec_words_nmt_transformer": "transformer_sec_words_nmt",
}
