"""Communication between the ranks of a script, with torch.distributed if the script has initialised it."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from toolkit.errors import CheckpointError, UserError
from toolkit.run.failure.classes import disk_errno


def group() -> Any:
    """Return torch.distributed if the script has initialised it, else None. Does not import torch."""
    found = sys.modules.get("torch.distributed")
    return found if found is not None and found.is_available() and found.is_initialized() else None


#: Seconds in which torch's threads drop their last tensors.
_DROP_S = 0.1


def let_threads_drop_tensors() -> None:
    """Wait a moment at the end of a script that has a process group.

    A thread of gloo may still have to drop the tensors of the last collective. It needs the interpreter for
    that. If the interpreter is shutting down, the process aborts (SIGABRT), and a finished run would fail.
    """
    if group() is not None:
        time.sleep(_DROP_S)


def largest(*values: float) -> list[float]:
    """Return the maximum of each value over all ranks; without a group, this rank's values. Collective."""
    distributed = group()
    if distributed is None:
        return list(values)
    torch = sys.modules["torch"]
    tensor = torch.tensor(values, dtype=torch.float64, device=_device(torch, distributed))
    distributed.all_reduce(tensor, op=distributed.ReduceOp.MAX)
    found: list[float] = tensor.tolist()
    return found


def from_rank_0(value: Any) -> Any:
    """Return rank 0's value on every rank. Sent as JSON, to avoid pickle. Collective; needs a group."""
    distributed, torch = group(), sys.modules["torch"]
    text = json.dumps(value).encode()
    (size,) = largest(float(len(text)))
    padded = torch.frombuffer(bytearray(text.ljust(int(size))), dtype=torch.uint8)
    sent = padded.to(_device(torch, distributed))
    distributed.broadcast(sent, src=0)
    return json.loads(bytes(sent.tolist()))


def _device(torch: Any, distributed: Any) -> Any:
    """Return the device of tensors for collectives of the default group."""
    if distributed.get_backend() == "nccl" or "cpu:" not in str(distributed.get_backend_config()):
        return torch.device("cuda", _gpu(torch, distributed))
    return torch.device("cpu")


def _gpu(torch: Any, distributed: Any) -> int:
    """Return the number of this rank's GPU.

    A script may place its model on the GPU of its LOCAL_RANK without making that torch's current one. A
    collective on another GPU would need a new communicator, for which the other ranks do not come.
    """
    bound = distributed.distributed_c10d._get_default_group().bound_device_id
    if bound is not None and bound.index is not None:
        return int(bound.index)
    current, local_rank = torch.cuda.current_device(), int(os.environ.get("LOCAL_RANK") or 0)
    return local_rank if current == 0 and local_rank < torch.cuda.device_count() else int(current)


#: Seconds between two meetings of the ranks while rank 0 works.
_MEET_EVERY_S = 1.0
#: What a rank reports to the others in place of an errno; 0 for no error. The largest number counts.
_UNKNOWN, _USER = 1 << 16, 1 << 17


class SharedError:
    """An error on one rank that all ranks raise, so that no rank waits for another.

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

    def work_on_rank_0(self, work: Callable[[], None] | None) -> None:
        """Let rank 0 work for longer than a collective may take, 10 minutes with NCCL. Collective.

        work  None on the other ranks
        """
        with self, ThreadPoolExecutor(1) as thread:
            if group() is None:
                return None if work is None else work()
            task = None if work is None else thread.submit(work)
            while largest(float(task is not None and not wait([task], _MEET_EVERY_S).done))[0]:
                pass
            if task is not None:
                task.result()

    def raise_together(self) -> None:
        """Raise CheckpointError or UserError if any rank has one. Collective.

        All ranks name the errno of the disk, because it decides whether the run starts again.
        """
        number = int(largest(self._number())[0])
        if self._own is not None:
            raise self._own
        if number == _USER:
            raise UserError(f"{self._what}: an error on another rank; see its log")
        if number:
            what = "an error" if number == _UNKNOWN else os.strerror(number)
            raise CheckpointError(f"{self._what}: {what} on another rank; see its log")

    def _number(self) -> int:
        if self._own is None:
            return 0
        return _USER if isinstance(self._own, UserError) else disk_errno(self._own) or _UNKNOWN
