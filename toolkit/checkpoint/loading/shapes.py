"""Names and shapes of tensors: those in a file of weights, and those of a model. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolkit.errors import DataError

#: The header of a safetensors file begins with its length; no header is longer.
_LONGEST_HEADER = 100_000_000
#: Most names of tensors that a message shows for each difference.
_NAMED = 5

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]
#: Tensors of a model: all names of each (tied weights have several), and its shape.
Tensors = Sequence[tuple[Sequence[str], Shape]]


def read_shapes(file: Path) -> Shapes:
    """Names and shapes of the tensors in a safetensors file. Raises DataError if it is not one."""
    try:
        with open(file, "rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(length) if length <= _LONGEST_HEADER else b"")
        tensors = {name: tensor for name, tensor in header.items() if name != "__metadata__"}
        return {name: tuple(map(int, tensor["shape"])) for name, tensor in tensors.items()}
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise DataError(f"{file} cannot be read as a safetensors file") from error


def misfit(found: Shapes, expected: Tensors) -> str:
    """Describe how the tensors of a file differ from those of a model; empty if they do not."""
    known = {name: shape for names, shape in expected for name in names}
    differ = [name for name in known if name in found and found[name] != known[name]]
    missing = [names[0] for names, _ in expected if found.keys().isdisjoint(names)]
    doubled = [" = ".join(same) for names, _ in expected if len(same := [n for n in names if n in found]) > 1]
    parts = {
        "shapes differ": [f"{name} {list(found[name])}, expected {list(known[name])}" for name in differ],
        "the file lacks": [f"{name} {list(known[name])}" for name in missing],
        "the model lacks": [f"{name} {list(found[name])}" for name in found if name not in known],
        "the file names a tied weight twice, keep one name": doubled,
    }
    return "; ".join(f"{what}: {_first_names(names)}" for what, names in parts.items() if names)


def _first_names(names: Sequence[str]) -> str:
    """The first names, and the number of the others."""
    more = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
