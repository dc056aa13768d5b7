"""Vectors of the entities that mentions may mean, computed once per content and mapped into memory.

<prepared_dir>/entity_vectors-<key>/
    vectors.npy    [entities, size] float32; row 0 is that of none of the candidates
    meta.json

The key names the encoder's weights, how its tokens are pooled, the entities' tokens, and which of them
are candidates: another set of mentions with the same candidates finds them again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import torch

from toolkit.data.lists import Array
from toolkit.data.publish import publish_once
from toolkit.data.sealed import read_seal, seal
from toolkit.errors import DataError
from toolkit.mentions import layout
from toolkit.mentions.prepared import MentionSet
from toolkit.models.encoder import Encoder
from toolkit.models.mention_batch import chunks_of

_VERSION = 1
_VECTORS = "vectors.npy"
#: Entities whose texts are sorted by length together.
_BLOCK = 4096
_LOCK_TIMEOUT_S = 3600.0

#: Called with (what, done, of how many).
Report = Callable[[str, int, int | None], None]


def entity_vectors(
    encoder: Encoder,
    pooling: str,
    prepared: MentionSet,
    device: torch.device,
    report: Report = lambda what, done, total: None,
) -> Array:
    """What an encoder makes of the entities of a prepared set, [entities, size], mapped into memory.

    Rows of entities that no alias of the set has as a candidate are zero: of a large database most are
    never asked for. Computed, in single precision and without dropout, only where they are not there yet.
    Any number of processes may call this at once. Raises DataError.
    """
    description = _describe(encoder, pooling, prepared)
    path = prepared.path.parent / f"entity_vectors-{description['fingerprint'][:16]}"

    def fill(folder: Path) -> None:
        _compute(folder / _VECTORS, encoder, pooling, prepared, device, report)
        seal(folder, description)

    def is_ready() -> bool:
        try:
            return bool(read_seal(path, _VERSION, growing="")["fingerprint"] == description["fingerprint"])
        except DataError:
            return False

    publish_once(path, fill, is_ready, _LOCK_TIMEOUT_S)
    found: Array = np.load(path / _VECTORS, mmap_mode="r")
    return found


def _describe(encoder: Encoder, pooling: str, prepared: MentionSet) -> dict[str, Any]:
    files = prepared.meta["files"]
    names = (layout.ENTITY_TOKENS, layout.ENTITY_OFFSETS)
    description: dict[str, Any] = {
        "version": _VERSION,
        "weights": encoder.digest(),
        "pooling": pooling,
        "entities": [files[name] for name in names],
        "candidates": crc32(_wanted(prepared).tobytes()),
    }
    text = json.dumps(description, sort_keys=True)
    return description | {"fingerprint": hashlib.sha256(text.encode()).hexdigest()}


def _wanted(prepared: MentionSet) -> Array:
    """Numbers of the entities that are candidates, ascending."""
    found = np.unique(prepared.tables.candidates).astype(np.int64)
    return found[found >= 0]


@torch.no_grad()
def _compute(
    file: Path, encoder: Encoder, pooling: str, prepared: MentionSet, device: torch.device, report: Report
) -> None:
    tokens, wanted = prepared.tables.tokens, _wanted(prepared)
    found = np.lib.format.open_memmap(file, "w+", np.float32, (prepared.tables.entities, encoder.size))
    pad_id, training = int(prepared.meta["pad_id"]), encoder.training
    encoder.eval()
    for start in range(0, len(wanted), _BLOCK):
        which = wanted[start : start + _BLOCK]
        which = which[np.argsort(-tokens.lengths(which), kind="stable")]
        for first, last, _ in chunks_of(tokens.lengths(which)):
            rows = torch.from_numpy(tokens.gather(which[first:last], pad_id)).to(device)
            found[which[first:last]] = encoder.pooled(rows, pooling).float().cpu().numpy()
        report("encode entities", min(start + _BLOCK, len(wanted)), len(wanted))
    encoder.train(training)
    found.flush()
