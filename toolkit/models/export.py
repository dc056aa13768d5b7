"""Trained weights in the forms that other programs read."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from toolkit.data.hub import optional_file, pretrained_file
from toolkit.files import write_atomic
from toolkit.models.pretrained import Pretrained
from toolkit.rundir import RunDir

_TOKENIZER = "tokenizer.json"
_BESIDE = ("tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


def export_model(run: RunDir, model: nn.Module, root: str, tokenizer: str | None) -> None:
    """Write `<root>_trained_model.sav`, a state dict that torch.load reads with weights_only.

    A pretrained model also becomes a folder that transformers' from_pretrained loads, tokenizer included.
    """
    run.artifacts.mkdir(parents=True, exist_ok=True)
    network = model.network if isinstance(model, Pretrained) else model
    _save(run.trained_model(root), network)
    if isinstance(model, Pretrained):
        model.network.save_pretrained(run.exported_model)
        if tokenizer is not None:
            _copy_tokenizer(tokenizer, run.exported_model)


def _save(path: Path, network: nn.Module) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    torch.save({name: value.detach().cpu() for name, value in network.state_dict().items()}, temporary)
    temporary.replace(path)


def _copy_tokenizer(name: str, folder: Path) -> None:
    found = pretrained_file(name, _TOKENIZER)
    others = (optional_file(name, each, found) for each in _BESIDE)
    for file in (found, *(each for each in others if each is not None)):
        write_atomic(folder / file.name, file.read_text(encoding="utf-8"))
