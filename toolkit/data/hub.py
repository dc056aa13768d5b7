"""Files of a pretrained model: in a folder, or in the local cache of a model hub.

Imports nothing slow: the hub's own library only where a name is no folder.
"""

from __future__ import annotations

import os
from pathlib import Path

from toolkit.errors import DataError


def pretrained_file(path: str, name: str) -> Path:
    """Where a file of the model lies: in the folder `path`, or in the hub's cache under that name.

    What the cache holds is taken as it is, without asking the hub; HF_HUB_OFFLINE is respected.
    Raises DataError where there is no such file.
    """
    if os.path.isdir(path):
        file = Path(path) / name
        if not file.is_file():
            raise no_model(path, FileNotFoundError(f"there is no {name}"))
        return file
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        try:
            return Path(hf_hub_download(path, name, local_files_only=True))
        except LocalEntryNotFoundError:
            return Path(hf_hub_download(path, name))
    except (OSError, ValueError) as error:
        raise no_model(path, error) from error


def optional_file(path: str, name: str, beside: Path) -> Path | None:
    """A file of the model that need not be there; `beside` is one that was found."""
    file = beside.parent / name
    if os.path.isdir(path) or file.is_file():
        return file if file.is_file() else None
    try:
        return pretrained_file(path, name)
    except DataError:
        return None


def no_model(path: str, error: Exception) -> DataError:
    """What to say where a model or tokenizer cannot be loaded."""
    reason = str(error).strip().partition("\n")[0].rstrip(".")
    if os.path.isdir(path):
        found = ", ".join(sorted(each.name for each in Path(path).iterdir())[:12]) or "nothing"
        return DataError(
            f"no model can be loaded from the folder {path} ({reason}); it holds: {found}. A model's folder "
            "holds config.json, model.safetensors and tokenizer.json (in an older one, transformers' "
            "AutoTokenizer makes the last: load the folder with it and save it there)"
        )
    if os.path.isabs(path):
        return DataError(f"there is no folder {path}; fetch the model, or correct the path")
    return DataError(
        f"{path!r} is no folder here, and no hub gave a model of that name ({reason}). Give the folder of a "
        "model; where this machine reaches no hub, fetch it elsewhere and copy the folder"
    )
