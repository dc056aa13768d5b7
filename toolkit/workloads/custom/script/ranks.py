"""Agreement of the ranks of a script, through torch.distributed if the script has initialised it."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from toolkit.errors import CheckpointError, UserError


def group() -> Any:
    """torch.distributed, where the script has initialised it, else None. Imports no torch."""
    found = sys.modules.get("torch.distributed")
    return found if found is not None and found.is_available() and found.is_initialized() else None


#: Seconds in which torch's threads drop their last tensors.
_DROP_S = 0.1


def let_threads_drop_tensors() -> None:
    """Wait a moment at the end of a script that has a group.

    A thread of gloo may still have to drop the tensors of the last collective. It needs the interpreter for
    that, and ends the process with SIGABRT if the interpreter is ending: a finished run would have failed.
    """
    if group() is not None:
        time.sleep(_DROP_S)


def largest(*values: float) -> list[float]:
    """The largest of each value over all ranks; this rank's own ones without a group. Collective."""
    distributed = group()
    if distributed is None:
        return list(values)
    torch = sys.modules["torch"]
    tensor = torch.tensor(values, dtype=torch.float64, device=_device(torch, distributed))
    distributed.all_reduce(tensor, op=distributed.ReduceOp.MAX)
    found: list[float] = tensor.tolist()
    return found


def from_rank_0(value: Any) -> Any:
    """Return rank 0's value on every rank, as JSON: no rank unpickles. Collective; needs a group."""
    distributed, torch = group(), sys.modules["torch"]
    text = json.dumps(value).encode()
    (size,) = largest(float(len(text)))
    padded = torch.frombuffer(bytearray(text.ljust(int(size))), dtype=torch.uint8)
    sent = padded.to(_device(torch, distributed))
    distributed.broadcast(sent, src=0)
    return json.loads(bytes(sent.tolist()))


def _device(torch: Any, distributed: Any) -> Any:
    """Return the device on which the default group adds numbers."""
    if distributed.get_backend() == "nccl" or "cpu:" not in str(distributed.get_backend_config()):
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


#: Errors that a rank reports to the others, by number, the gravest last.
_ERRORS = (None, CheckpointError, UserError)


class SharedError:
    """An error on one rank that all ranks raise, so that none waits for another.

    Use as `with shared: …` around what may fail, then call `raise_together`.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._own: Exception | None = None

    def __enter__(self) -> SharedError:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, OSError):
            self._own = CheckpointError(f"{self._what}: {error.strerror or error}")
            self._own.__cause__ = error
        elif isinstance(error, CheckpointError | UserError):
            self._own = error
        return self._own is not None

    def raise_together(self) -> None:
        """Raise CheckpointError or UserError where any rank has met one. Collective."""
        own = next((code for code, kind in enumerate(_ERRORS) if kind and isinstance(self._own, kind)), 0)
        code = int(largest(own)[0])
        if self._own is not None:
            raise self._own
        if (kind := _ERRORS[code]) is not None:
            raise kind(f"{self._what}: another rank could not; its log says why")
