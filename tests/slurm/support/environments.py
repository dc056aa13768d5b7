"""What real jobs, steps and shells of Slurm had in their environments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_RECORDED = Path(__file__).parent / "recorded" / "environments.json"


def _recorded() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each environment with its name; those of a step's ranks stand together, with what all have."""
    found: dict[str, dict[str, Any]] = json.loads(_RECORDED.read_text())
    for name, environ in found.items():
        if (shared := environ.pop("all", None)) is None:
            yield name, environ
        else:
            yield from ((f"{name}, {rank}", shared | own) for rank, own in environ.items())


ENVIRONMENTS: dict[str, dict[str, str]] = dict(_recorded())
