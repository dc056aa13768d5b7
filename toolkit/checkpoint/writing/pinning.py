"""Page-locked memory of the host, into which a GPU copies directly.

torch's own pinned memory is rounded up to a power of two and never freed. A training state is large and its
size is known, so its memory is registered with CUDA as it is.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch

#: cudaHostRegisterPortable: page-locked for every CUDA context of the process.
_PORTABLE = 1


def pin(memory: torch.Tensor, owner: object) -> weakref.finalize[..., Any]:
    """Register memory with CUDA. Calling the result, or the end of the owner, unregisters it.

    The memory must outlive its registration. Raises CudaError.
    """
    address = memory.data_ptr()
    _check(torch.cuda.cudart().cudaHostRegister(address, memory.nbytes, _PORTABLE))
    unpin = weakref.finalize(owner, _unregister, address)
    # When the process exits, CUDA may already be shut down.
    unpin.atexit = False
    return unpin


def _unregister(address: int) -> None:
    _check(torch.cuda.cudart().cudaHostUnregister(address))


def _check(status: Any) -> None:
    torch.cuda.check_error(int(status))
