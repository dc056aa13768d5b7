"""Files of a pretrained model: in a folder, or in the local cache of a model hub.

Imports nothing slow: the hub's library only if a name is not a folder.
"""

from __future__ import annotations

import os
from pathlib import Path

from toolkit.data.sources.file_digests import NotRemembered, is_limited
from toolkit.errors import DataError


def pretrained_file(path: str, name: str) -> Path:
    """Return the path of a model's file: in the folder `path`, or in the hub's cache under that name.

    The cache is used without a request to the hub; HF_HUB_OFFLINE is respected.
    Raises DataError if the file is missing, and NotRemembered within `at_most`.
    """
    if os.path.isdir(path):
        file = Path(path) / name
        if not file.is_file():
            raise no_model(path, FileNotFoundError(f"there is no {name}"))
        return file
    if is_limited():
        raise NotRemembered
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        try:
            return Path(hf_hub_download(path, name, local_files_only=True))
        except LocalEntryNotFoundError:
            return Path(hf_hub_download(path, name))
    except (OSError, ValueError) as error:
        raise no_model(path, error) from error


def check_weights(path: str) -> None:
    """Raise DataError if a model's folder holds no weights as safetensors."""
    if os.path.isdir(path) and not any(Path(path).glob("*.safetensors")):
        raise no_model(path, FileNotFoundError("there is no model.safetensors"))


def optional_file(path: str, name: str, beside: Path) -> Path | None:
    """A file of the model that may be missing; `beside` is a file that was found."""
    file = beside.parent / name
    if os.path.isdir(path) or file.is_file():
        return file if file.is_file() else None
    try:
        return pretrained_file(path, name)
    except DataError:
        return None


def check_local_model(path: str, name: str) -> None:
    """Raise DataError unless the folder of a model holds a file.

    A name on a hub is left to the worker: a request takes long, and compute nodes may see another cache.
    """
    if os.path.isdir(path):
        pretrained_file(path, name)
    elif os.path.isabs(path):
        raise no_model(path, FileNotFoundError())


def no_model(path: str, error: Exception) -> DataError:
    """Return the error for a model or tokenizer that cannot be loaded."""
    reason = str(error).strip().partition("\n")[0].rstrip(".")
    if os.path.isdir(path):
        found = ", ".join(sorted(each.name for each in Path(path).iterdir())[:12]) or "nothing"
        return DataError(
            f"no model can be loaded from the folder {path} ({reason}); it holds: {found}. A model's folder "
            "holds config.json, model.safetensors and tokenizer.json. To renew an older one that you trust, "
            "load it with transformers' AutoModel and AutoTokenizer, and save both there: "
            "pytorch_model.bin is a pickle, which may hold code, and is not opened here"
        )
    if os.path.isabs(path):
        return DataError(f"there is no folder {path}; fetch the model, or correct the path")
    return DataError(
        f"{path!r} is not a folder here, and no hub gave a model of that name ({reason}). Give the folder of "
        "a model; if this machine reaches no hub, fetch it elsewhere and copy the folder"
    )
