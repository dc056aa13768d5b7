"""Files compressed with gzip, recognized by their names."""

from __future__ import annotations

from pathlib import Path

ENDING = ".gz"


def is_compressed(path: Path) -> bool:
    """Whether the file is compressed, by its name."""
    return path.suffix.lower() == ENDING


def unpacked_name(path: Path) -> Path:
    """The path without the ending of a compressed file."""
    return path.with_suffix("") if is_compressed(path) else path
