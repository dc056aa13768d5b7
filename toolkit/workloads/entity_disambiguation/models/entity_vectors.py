"""The vectors of the candidates of a prepared set, computed once and mapped into memory.

<prepared_dir>/entity_vectors-<key>/
    vectors.npy    [entities, size] float32; row 0 is "none of the candidates"
    meta.json

The key is a hash of the encoder's weights, the pooling, the tokens of entities, and the set of candidates.
Other sets of mentions with the same candidates use the same vectors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import torch

from toolkit.data.prepared.folder import PreparedFolder
from toolkit.data.prepared.manifest import write_manifest
from toolkit.data.ragged import Array, Lists
from toolkit.data.sources.source_files import with_fingerprint
from toolkit.nlp.encoder import Encoder
from toolkit.workload import Progress, silent
from toolkit.workloads.entity_disambiguation.config import BiEncoder
from toolkit.workloads.entity_disambiguation.data.samples import layout
from toolkit.workloads.entity_disambiguation.data.samples.known import Known
from toolkit.workloads.entity_disambiguation.data.samples.prepared import MentionSet
from toolkit.workloads.entity_disambiguation.models.mention_batch import chunks_of

_VECTORS = "vectors.npy"
#: Number of entities that are sorted by length together.
_BLOCK = 4096


class _VectorsFolder(PreparedFolder[Any]):
    """The folder of the vectors; it has no splits."""

    VERSION = 1


def fixed_encoder(model: Any, path: str, known: Known) -> Encoder:
    """The frozen encoder of entities for a model section, with the weights in `path`."""
    return Encoder(
        path, layers=model.entity_layers, dropout=None, vocabulary_size=known.vocabulary_size,
        like=known.markers_like, pad_id=known.pad_id, key="model.entity_layers",
    )  # fmt: skip


def fixed_pooling(model: Any) -> str:
    """How the frozen encoder pools its tokens."""
    return model.pooling if isinstance(model, BiEncoder) else "mean"


def entity_vectors(
    encoder: Encoder, pooling: str, prepared: MentionSet, progress: Progress = silent
) -> Array:
    """Return an encoder's vectors of the entities of a prepared set, [entities, size], mapped into memory.

    Only candidates of the set have a vector; other rows are zero, because most entities of a large database
    are never candidates. Missing vectors are computed on the CPU, in single precision and without dropout.
    Several processes may call this at once. Raises DataError.
    """
    description = _describe(encoder, pooling, prepared)
    path = prepared.path.parent / f"entity_vectors-{description['fingerprint'][:16]}"

    def fill(folder: Path) -> None:
        _compute(folder / _VECTORS, encoder, pooling, prepared, progress)
        write_manifest(folder, description)

    _VectorsFolder.open_or_build(path, description["fingerprint"], fill)
    vectors: Array = np.load(path / _VECTORS, mmap_mode="r")
    return vectors


def _describe(encoder: Encoder, pooling: str, prepared: MentionSet) -> dict[str, Any]:
    files = prepared.meta["files"]
    columns = (layout.ENTITY_TOKENS, layout.ENTITY_OFFSETS)
    description: dict[str, Any] = {
        "version": _VectorsFolder.VERSION,
        "weights": encoder.digest(),
        "pooling": pooling,
        "entities": [files[column.file] for column in columns],
        "candidates": crc32(_wanted(prepared).tobytes()),
    }
    return with_fingerprint(description)


def _wanted(prepared: MentionSet) -> Array:
    """The numbers of all candidates, ascending."""
    found = np.unique(prepared.tables.candidates).astype(np.int64)
    return found[found >= 0]


def _compute(file: Path, encoder: Encoder, pooling: str, prepared: MentionSet, progress: Progress) -> None:
    tokens, wanted = prepared.tables.tokens, _wanted(prepared)
    found = np.lib.format.open_memmap(file, "w+", np.float32, (len(tokens), encoder.size))
    pad_id, training = int(prepared.meta["pad_id"]), encoder.training
    encoder.eval()
    for start in range(0, len(wanted), _BLOCK):
        which = wanted[start : start + _BLOCK]
        found[which] = vectors_of(encoder, pooling, tokens, which, pad_id, torch.device("cpu"))
        progress("encode entities", min(start + _BLOCK, len(wanted)), len(wanted))
    encoder.train(training)
    found.flush()


@torch.no_grad()
def vectors_of(
    encoder: Encoder, pooling: str, tokens: Lists, which: Array, pad_id: int, device: torch.device
) -> Array:
    """The vectors of an encoder in evaluation mode for the texts of entities, [n, size]."""
    found = np.empty((len(which), encoder.size), np.float32)
    order = np.argsort(-tokens.lengths(which), kind="stable")
    for first, last, _ in chunks_of(tokens.lengths(which[order])):
        places = order[first:last]
        rows = torch.from_numpy(tokens.gather(which[places], pad_id)).to(device)
        found[places] = encoder.pooled(rows, pooling).float().cpu().numpy()
    return found
