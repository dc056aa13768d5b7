"""Staging: a training state copied into buffers that each save reuses, laid out as its files will be.

Training waits for the copy alone; whoever writes the files takes the bytes from here while training
goes on. Reused, because the first touch of fresh memory costs several times the copy itself. Header and
tensors lie together from a page's begin on, as output.py wants it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

import torch

# The very rule of safetensors' load_model for which of several shared tensors a file must hold.
from safetensors.torch import _remove_duplicate_names

from toolkit.checkpoint.copying import copy
from toolkit.checkpoint.output import BLOCK
from toolkit.rundir import PROGRESS, TRAINING, WEIGHTS
from toolkit.state import TrainState

#: Bytes of a file that are handled at once: enough to go for the GIL seldom.
PIECE = 32 << 20

#: Names in the header, as the format's description has them.
_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
    torch.complex64: "C64",
}


class Staging:
    """The buffers of one run's checkpoints; what they hold is valid until the next `fill`."""

    def __init__(self) -> None:
        self._weights, self._training = Buffer(), Buffer()
        self._progress = b""
        self.step = 0
        self.best_step: int | None = None
        self.chain = ""

    def reserve(self, state: TrainState) -> None:
        """Lay the buffers out for states like this one. Copies nothing, and the memory is not there yet."""
        self._weights.lay_out(*_weights(state))
        self._training.lay_out(state.training_tensors(), {})

    def touch(self) -> None:
        """Write to all of the reserved memory once, so that the first copy need not wait for it."""
        self._weights.touch()
        self._training.touch()

    def fill(self, state: TrainState) -> None:
        """Copy a state; return when the copy is whole, so that the state may change."""
        self._weights.fill(*_weights(state))
        self._training.fill(state.training_tensors(), {})
        stored = {"progress": state.progress.to_json(), "scaler": state.scaler.state_dict()}
        self._progress = json.dumps(stored, indent=2).encode() + b"\n"
        progress = state.progress
        self.step, self.best_step, self.chain = progress.step, progress.best_step, progress.chain
        if self._weights.pinned or self._training.pinned:
            torch.cuda.current_stream().synchronize()

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return self._weights.size + self._training.size + len(self._progress)

    def files(self) -> dict[str, Iterator[memoryview]]:
        """The files by name, each as its bytes in pieces."""
        return {
            WEIGHTS: self._weights.pieces(),
            TRAINING: self._training.pieces(),
            PROGRESS: iter([memoryview(self._progress)]),
        }


class Buffer:
    """One file of the safetensors format in memory: its header, and all tensors one after another.

    pinned  whether a GPU copies into the buffer directly
    """

    def __init__(self) -> None:
        self.pinned = False
        self._layout: Any = None
        # The file's bytes, and those of them that are the tensors'.
        self._file = self._tensors = torch.empty(0, dtype=torch.uint8)
        self._places: list[tuple[str, torch.Tensor]] = []

    def fill(self, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> None:
        """Copy the tensors to their places; CUDA tensors arrive when their stream has got there.

        Raises TypeError for a dtype that the format does not know.
        """
        self.lay_out(tensors, metadata)
        copy((place, tensors[name]) for name, place in self._places)

    def lay_out(self, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> None:
        """Give each tensor its place, unless it has it. Raises TypeError as `fill` does."""
        layout = {name: (tensor.dtype, tensor.shape, tensor.is_cuda) for name, tensor in tensors.items()}
        if (layout, metadata) != self._layout:
            self._lay_out(tensors, metadata)
            self._layout = layout, dict(metadata)

    def touch(self) -> None:
        """Write to all of the tensors' memory, whatever it holds."""
        self._tensors.zero_()

    @property
    def size(self) -> int:
        return len(self._file)

    def pieces(self) -> Iterator[memoryview]:
        """The bytes of the file, in order."""
        raw = self._file.numpy().data
        for start in range(0, len(raw), PIECE):
            yield raw[start : start + PIECE]

    def _lay_out(self, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> None:
        """Those of wide numbers first, so that all are aligned."""
        names = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
        ends = list(accumulate(tensors[name].nbytes for name in names))
        total = ends[-1] if ends else 0
        header = _header(names, tensors, ends, metadata)
        self.pinned = any(tensor.is_cuda for tensor in tensors.values())
        # The old one must be gone first: two of them may be more than there is.
        self._places.clear()
        self._file = self._tensors = torch.empty(0, dtype=torch.uint8)
        self._file = _aligned(len(header) + total, pinned=self.pinned)
        self._file[: len(header)] = torch.frombuffer(bytearray(header), dtype=torch.uint8)
        self._tensors = self._file[len(header) :]
        for name, end in zip(names, ends, strict=True):
            tensor = tensors[name]
            if tensor.numel():
                place = self._tensors[end - tensor.nbytes : end].view(tensor.dtype).view(tensor.shape)
                self._places.append((name, place))


def _aligned(size: int, *, pinned: bool) -> torch.Tensor:
    """Bytes that begin at a multiple of BLOCK."""
    memory = torch.empty(size + BLOCK, dtype=torch.uint8, pin_memory=pinned)
    start = -memory.data_ptr() % BLOCK
    return memory[start : start + size]


def _weights(state: TrainState) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """The weights as a file holds them, shared ones once, and its metadata."""
    weights = state.model.state_dict()
    dropped = {name: kept for kept, names in _remove_duplicate_names(weights).items() for name in names}
    kept = {name: tensor for name, tensor in weights.items() if name not in dropped}
    # "pt" is what the readers of other libraries ask for.
    return kept, {"format": "pt", **dropped}


def _header(
    names: list[str], tensors: Mapping[str, torch.Tensor], ends: list[int], metadata: Mapping[str, str]
) -> bytes:
    """Length (8 bytes, little-endian) and JSON, padded so that the tensors begin at a multiple of 8."""
    entries: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    for name, end in zip(names, ends, strict=True):
        tensor = tensors[name]
        if tensor.dtype not in _DTYPES:
            raise TypeError(f"tensor {name!r} is of {tensor.dtype}, which no safetensors file can hold")
        entries[name] = {
            "dtype": _DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [end - tensor.nbytes, end],
        }
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
