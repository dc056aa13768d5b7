"""The error of torch about a worker of a DataLoader that is killed while its batch is awaited."""

from __future__ import annotations

import os
import signal

from torch.utils.data import DataLoader, Dataset


class _Deadly(Dataset[int]):
    """Its only sample kills the process that reads it, once that is told to go on."""

    def __init__(self, told: int) -> None:
        self._told = told

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> int:
        os.read(self._told, 1)
        os.kill(os.getpid(), signal.SIGKILL)
        return index


def error_of_killed_worker() -> RuntimeError:
    told, tell = os.pipe()
    try:
        batches = iter(DataLoader(_Deadly(told), num_workers=1, multiprocessing_context="fork"))
        # Torch raises another error if a worker is killed before its batch is awaited.
        os.write(tell, b".")
        next(batches)
    except RuntimeError as error:
        return error
    finally:
        os.close(told)
        os.close(tell)
    raise AssertionError("its worker was killed, and the loader raised no error")
