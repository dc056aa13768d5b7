"""Exporting trained weights in formats that other programs read."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from toolkit.nlp.encoder import Encoder
from toolkit.nlp.exported_files import ExportedFiles
from toolkit.run.run_dir import RunDir


def export_model(
    run: RunDir, model: nn.Module, root: str, tokenizer: Sequence[Path] = (), pretrained: Any = None
) -> None:
    """Write `<root>_trained_model.sav`, a state dict that torch.load reads with weights_only.

    pretrained   transformers' model inside, with all weights: saved as a folder that from_pretrained loads,
                 with the files of its tokenizer. Without it, these get a separate folder, so that the run
                 can be used without its sources.
    """
    run.artifacts.mkdir(parents=True, exist_ok=True)
    _save(ExportedFiles(run).state_dict(root), model if pretrained is None else pretrained)
    folder = ExportedFiles(run).encoding
    if pretrained is not None:
        folder = ExportedFiles(run).model
        pretrained.save_pretrained(folder)
    for file in tokenizer:
        folder.mkdir(exist_ok=True)
        shutil.copyfile(file, folder / file.name)


def export_encoders(run: RunDir, encoders: Mapping[str, Encoder], tokenizer: Sequence[Path]) -> None:
    """Write encoders as folders that transformers' from_pretrained loads, each with the tokenizer.

    Their names are folders in the folder of the exported model; the name "" is that folder itself.
    """
    for name, encoder in encoders.items():
        folder = ExportedFiles(run).model / name
        encoder.network.save_pretrained(folder)
        for file in tokenizer:
            shutil.copyfile(file, folder / file.name)


def _save(path: Path, network: nn.Module) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    torch.save({name: value.detach().cpu() for name, value in network.state_dict().items()}, temporary)
    temporary.replace(path)
