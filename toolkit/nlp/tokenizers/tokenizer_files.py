"""The files of a pretrained tokenizer, and the content that decides its ids.

Imports nothing slow.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from toolkit.errors import DataError
from toolkit.files import read_object
from toolkit.nlp.hub import optional_file, pretrained_file

TOKENIZER = "tokenizer.json"
#: Copied with it if they exist: a model's folder needs them.
TOKENIZER_SETTINGS = ("tokenizer_config.json", "special_tokens_map.json")


def content(path: str) -> dict[str, Any]:
    """Return what decides a tokenizer's ids, without its path. Raises DataError if it is missing."""
    file = pretrained_file(path, TOKENIZER)
    with open(file, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"sha256": digest, "padding": declared_padding(path, file)}


def vocabulary_size(folder: Path) -> int:
    """Number of tokens of a tokenizer.json without those that were added later; 0 if it is not known."""
    # Without the file, which another check reports, or on a hub, there is no model.
    model = read_object(folder / TOKENIZER).get("model")
    tokens = model.get("vocab") if isinstance(model, dict) else None
    return len(tokens) if isinstance(tokens, dict | list) else 0


def declared_padding(path: str, file: Path) -> str | int | None:
    """The padding token, or its id, that the files beside tokenizer.json name."""
    for name, key in (
        ("tokenizer_config.json", "pad_token"),
        ("special_tokens_map.json", "pad_token"),
        ("config.json", "pad_token_id"),
        ("tokenizer_config.json", "eos_token"),
        ("special_tokens_map.json", "eos_token"),
    ):
        found = read_json_object(optional_file(path, name, file)).get(key)
        found = found.get("content") if isinstance(found, dict) else found
        if isinstance(found, str | int):
            return found
    return None


def read_json_object(file: Path | None) -> dict[str, Any]:
    """The object in a JSON file; empty without a file, or for any other value. Raises DataError."""
    if file is None:
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: no JSON can be read there ({error})") from error
    return found if isinstance(found, dict) else {}
