"""A copy of the training state in buffers that each save reuses, laid out like its files.

Training waits only for the copy; the writing thread takes the bytes from here while training continues.
Buffers are reused, because the first touch of new memory costs several times as much as the copy.
"""

from __future__ import annotations

import json
import logging
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from itertools import accumulate
from mmap import MADV_DONTFORK, MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Any

import torch

# The names of the types in a header, and the rule by which safetensors' load_model decides which of several
# shared tensors a file must hold.
from safetensors.torch import _TYPES, _remove_duplicate_names

from toolkit.checkpoint.state import TrainState
from toolkit.checkpoint.writing.direct_io import BLOCK
from toolkit.errors import UserError
from toolkit.run.run_dir import PROGRESS, TRAINING, WEIGHTS

log = logging.getLogger("toolkit")

#: cudaHostRegisterPortable: page-locked for every CUDA context of the process.
_PORTABLE = 1
#: Bytes of a file that are written at once: large, so that the writing thread seldom takes the GIL.
PIECE = 32 << 20

_DTYPES = {dtype: name for name, dtype in _TYPES.items()}


class Staging:
    """The buffers of one run's checkpoints; their content is valid until the next `fill`."""

    def __init__(self) -> None:
        self._weights, self._training = Buffer(), Buffer()
        self._progress = b""
        self.step = 0
        self.chain = ""

    def reserve(self, state: TrainState) -> None:
        """Lay out the buffers for states like this one. Copies nothing."""
        self._weights.lay_out(*_weights(state))
        self._training.lay_out(state.training_tensors(), {})

    def touch(self) -> None:
        """Write to all of the reserved memory once: the first copy then finds it mapped."""
        self._weights.touch()
        self._training.touch()

    def fill(self, state: TrainState) -> None:
        """Copy a state, which may change after this returns.

        Raises TypeError for a dtype that the safetensors format does not know.
        """
        self._weights.fill(*_weights(state))
        self._training.fill(state.training_tensors(), {})
        stored = {"progress": asdict(state.progress), "scaler": state.scaler.state_dict()}
        self._progress = json.dumps(stored, indent=2).encode() + b"\n"
        self.step, self.chain = state.progress.step, state.progress.chain
        if self._weights.is_on_gpu or self._training.is_on_gpu:
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

    is_on_gpu  whether tensors come from a GPU
    is_pinned  whether the memory is page-locked, so that a GPU copies into it directly
    """

    def __init__(self) -> None:
        self.is_on_gpu = self.is_pinned = False
        self._unpin: Callable[[], object] = lambda: None
        self._layout: Any = None
        # All bytes of the file, and those of the tensors.
        self._file = self._tensors = torch.empty(0, dtype=torch.uint8)
        self._places: list[tuple[str, torch.Tensor]] = []

    def fill(self, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> None:
        """Copy the tensors to their places. Copies from a GPU are asynchronous, in its current stream."""
        self.lay_out(tensors, metadata)
        with torch.no_grad():
            for name, place in self._places:
                place.copy_(tensors[name], non_blocking=True)

    def lay_out(self, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> None:
        """Give each tensor its place, unless the layout is the same as before."""
        layout = {name: (tensor.dtype, tensor.shape, tensor.is_cuda) for name, tensor in tensors.items()}
        if (layout, metadata) != self._layout:
            self._lay_out(tensors, metadata)
            self._layout = layout, dict(metadata)

    def touch(self) -> None:
        """Overwrite all of the tensors' memory."""
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
        """Lay out the widest types first, so that all tensors are aligned."""
        names = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
        ends = list(accumulate(tensors[name].nbytes for name in names))
        total = ends[-1] if ends else 0
        header = _header(names, tensors, ends, metadata)
        self.is_on_gpu = self.is_pinned = any(tensor.is_cuda for tensor in tensors.values())
        # The old memory is freed first: both may not fit.
        self._unpin()
        self._places.clear()
        self._file = self._tensors = torch.empty(0, dtype=torch.uint8)
        size = len(header) + total
        self._file = _unforked(size) if self.is_pinned else _aligned(size)
        self._unpin = lambda: None
        if self.is_pinned:
            try:
                self._unpin = pin(self._file, self)
            except torch.cuda.CudaError as error:
                # In some containers and virtual machines memory cannot be page-locked.
                log.warning("memory cannot be page-locked, so saving is slower than usual: %s", error)
                _forget_error()
                self.is_pinned = False
        self._file[: len(header)] = torch.frombuffer(bytearray(header), dtype=torch.uint8)
        self._tensors = self._file[len(header) :]
        for name, end in zip(names, ends, strict=True):
            tensor = tensors[name]
            if tensor.numel():
                place = self._tensors[end - tensor.nbytes : end].view(tensor.dtype).view(tensor.shape)
                self._places.append((name, place))


def _aligned(size: int) -> torch.Tensor:
    """Allocate bytes that begin at a multiple of BLOCK, as direct_io.py needs them."""
    memory = torch.empty(size + BLOCK, dtype=torch.uint8)
    start = -memory.data_ptr() % BLOCK
    return memory[start : start + size]


def _unforked(size: int) -> torch.Tensor:
    """Allocate whole pages that processes forked later do not have.

    With older kernels, such as that of RHEL 8, this process would otherwise get a new page when it writes to
    one that it shares with them, and the GPU would still write into the old one.
    """
    memory = mmap(-1, size, flags=MAP_PRIVATE | MAP_ANONYMOUS)
    memory.madvise(MADV_DONTFORK)
    return torch.frombuffer(memory, dtype=torch.uint8)


def _weights(state: TrainState) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Return the weights for a file, each shared tensor once, and the file's metadata.

    Raises UserError for a view of a tensor that is not in the model as a whole.
    """
    weights = state.model.state_dict()
    try:
        duplicates = _remove_duplicate_names(weights)
    except RuntimeError:
        parts = [name for name, each in weights.items() if each.untyped_storage().nbytes() > each.nbytes]
        raise UserError(
            f"{', '.join(parts)} of the model cannot be saved: a view of a larger tensor; copy it with "
            "clone(), as in nn.Parameter(larger[:3].clone())"
        ) from None
    dropped = {name: kept for kept, names in duplicates.items() for name in names}
    kept = {name: tensor for name, tensor in weights.items() if name not in dropped}
    # Other libraries refuse a file without "pt".
    return kept, {"format": "pt", **dropped}


def _header(
    names: list[str], tensors: Mapping[str, torch.Tensor], ends: list[int], metadata: Mapping[str, str]
) -> bytes:
    """Return the length (8 bytes, little-endian) and the JSON text, padded to a multiple of 8."""
    entries: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    for name, end in zip(names, ends, strict=True):
        tensor = tensors[name]
        if tensor.dtype not in _DTYPES:
            raise TypeError(
                f"tensor {name!r} is of {tensor.dtype}, which the safetensors format does not know"
            )
        entries[name] = {
            "dtype": _DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [end - tensor.nbytes, end],
        }
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def pin(memory: torch.Tensor, owner: object) -> weakref.finalize[..., Any]:
    """Register memory with CUDA: a GPU copies directly into what is page-locked.

    Calling the result, or the end of the owner, unregisters it. The memory must outlive its registration.
    torch's own pinned memory is rounded up to a power of two and never freed. A training state is large and
    its size is known, so its memory is registered as it is. Raises CudaError.
    """
    address = memory.data_ptr()
    _check(torch.cuda.cudart().cudaHostRegister(address, memory.nbytes, _PORTABLE))
    unpin = weakref.finalize(owner, _unregister, address)
    # When the process exits, CUDA may already be shut down.
    unpin.atexit = False
    return unpin


def _forget_error() -> None:
    """Let CUDA report its pending error here, and not at the next kernel of the training."""
    with suppress(RuntimeError):
        torch.zeros(1, device="cuda")
        torch.cuda.synchronize()


def _unregister(address: int) -> None:
    _check(torch.cuda.cudart().cudaHostUnregister(address))


def _check(status: Any) -> None:
    torch.cuda.check_error(int(status))
