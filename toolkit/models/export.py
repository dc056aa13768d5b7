"""Trained weights in the forms that other programs read."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import nn

from toolkit.models.encoder import Encoder
from toolkit.models.pretrained import Pretrained
from toolkit.rundir import RunDir


def export_model(run: RunDir, model: nn.Module, root: str, tokenizer: Sequence[Path] = ()) -> None:
    """Write `<root>_trained_model.sav`, a state dict that torch.load reads with weights_only.

    A pretrained model also becomes a folder that transformers' from_pretrained loads, with the files of its
    tokenizer. Beside any other model these lie in a folder of their own: a run can be used when all that it
    was made from is gone.
    """
    run.artifacts.mkdir(parents=True, exist_ok=True)
    network = model.network if isinstance(model, Pretrained) else model
    _save(run.trained_model(root), network)
    if isinstance(model, Pretrained):
        model.network.save_pretrained(run.exported_model)
    folder = run.exported_model if isinstance(model, Pretrained) else run.encoding
    for file in tokenizer:
        folder.mkdir(exist_ok=True)
        shutil.copyfile(file, folder / file.name)


def export_encoders(run: RunDir, encoders: Mapping[str, Encoder], tokenizer: Sequence[Path]) -> None:
    """Write encoders as folders that transformers' from_pretrained loads, each with the tokenizer.

    By their names within the folder of the exported model; a single one may be called "", the folder itself.
    """
    for name, encoder in encoders.items():
        folder = run.exported_model / name
        encoder.network.save_pretrained(folder)
        for file in tokenizer:
            shutil.copyfile(file, folder / file.name)


def _save(path: Path, network: nn.Module) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    torch.save({name: value.detach().cpu() for name, value in network.state_dict().items()}, temporary)
    temporary.replace(path)
