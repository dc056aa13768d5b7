"""An experiment file composed alone, without a check of types and limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.config.composition.compose import file_faults, gather
from toolkit.config.origins import Origins


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """A resolved tree of plain values, and the origin of every key."""

    tree: dict[str, Any]
    origins: Origins


def compose(path: Path, overrides: Sequence[str] = (), config_root: Path | None = None) -> Composed:
    """Compose a file. Raises ConfigError with all faults of composition."""
    faults = file_faults(path)
    tree = gather(path, overrides, config_root, faults)
    faults.raise_any()
    return Composed(tree=tree, origins=faults.origins)
