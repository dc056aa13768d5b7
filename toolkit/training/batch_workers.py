"""Batches for training and evaluation, made on demand or ahead of time by worker processes."""

from __future__ import annotations

import errno
import io
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from toolkit.errors import UserError
from toolkit.reliability.stop import signal_after_parent
from toolkit.task import Task
from toolkit.training.numerics.rng import seed_everything

#: Seconds to wait for a killed worker to exit; one that reads from a hung file system may take longer.
_EXIT_TIMEOUT_S = 5.0
#: Where Linux keeps shared memory, and torch's words if it cannot allocate some.
_SHARED_MEMORY, _NO_SHARED_MEMORY = Path("/dev/shm"), "unable to allocate shared memory"
#: Torch's messages about a file of shared memory name the file.
_TORCH_FILE = "/torch_"
#: Slurm, a launcher and a terminal send these to all processes of a rank.
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A request for one batch.

    split    the split of the samples
    seed     seeds the random numbers that are drawn for the batch, as for seed_everything
    samples  indices of the samples, shape [n]
    """

    split: str
    seed: tuple[int, ...]
    samples: np.ndarray

    def is_same(self, other: Request) -> bool:
        own, others = (self.split, self.seed), (other.split, other.seed)
        return own == others and np.array_equal(self.samples, other.samples)


class BatchSource(Protocol):
    """The source of training batches."""

    def take(self, task: Task, request: Request, device: torch.device) -> Any:
        """The batch of a request on a device. The generators are seeded for the forward pass."""

    def close(self) -> None:
        """End the processes that make batches."""


class OnDemand:
    """Makes each batch in this process when it is needed.

    seeds_again  whether to seed again after a batch is made, so that the forward pass draws the same random
                 numbers as if another process had made the batch
    """

    def __init__(self, *, seeds_again: bool = False) -> None:
        self._seeds_again = seeds_again

    def take(self, task: Task, request: Request, device: torch.device) -> Any:
        batch = _make_batch(task, request, device)
        if self._seeds_again:
            seed_everything(*request.seed)
        return batch

    def close(self) -> None:
        """Do nothing: there are no processes to end."""


class Ahead:
    """Has worker processes make the next batches ahead of time.

    A batch is the same as one that is made on demand, because its random numbers depend only on the request.

    workers   number of processes, at least one
    upcoming  yields the requests from now on; called again if a request differs from the expected one, for
              example after samples were put into quarantine
    """

    def __init__(self, workers: int, upcoming: Callable[[], Iterator[Request]]) -> None:
        self._workers = workers
        self._upcoming = upcoming
        self._stream: _Stream | None = None

    def take(self, task: Task, request: Request, device: torch.device) -> Any:
        if self._stream is None or not self._stream.skip_to(request):
            self.close()
            self._stream = _Stream(task, self._upcoming(), self._workers)
            # No assert: `python -O` would not skip.
            if not self._stream.skip_to(request):
                raise AssertionError("the requested batch is not among the upcoming ones")
        return self._stream.take(device)

    def close(self) -> None:
        """End the worker processes."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def make_batches(
    task: Task, requests: Iterable[Request], device: torch.device, workers: int
) -> Iterator[Any]:
    """Yield the batches of some requests in their order; with 0 workers this process makes them.

    The generators are seeded from the request before its batch is yielded, even if a worker made it.
    """
    if not workers:
        on_demand = OnDemand(seeds_again=True)
        yield from (on_demand.take(task, request, device) for request in requests)
        return
    with closing(_Stream(task, iter(requests), workers)) as stream:
        while stream.request is not None:
            yield stream.take(device)


class _Stream:
    """Batches from workers, in the order of requests; a few requests are always under way."""

    #: Requests that a new stream may skip: those of a step that has begun.
    _MOST_SKIPPED = 4096

    def __init__(self, task: Any, requests: Iterator[Request], workers: int) -> None:
        self._task = task
        self._requested: deque[Request] = deque()
        self._next = next(requests, None)
        self._rest = requests
        loader: DataLoader[Any] = DataLoader(
            _Maker(task),
            batch_size=None,
            sampler=self._requests(),
            num_workers=workers,
            collate_fn=_unchanged,
            worker_init_fn=_settle,
            # With fork, the workers inherit the task and all files that it has opened.
            multiprocessing_context="fork",
        )
        self._loader = loader
        self._batches: Iterator[Any] | None = None
        self._workers: list[BaseProcess] = []

    @property
    def request(self) -> Request | None:
        """The request of the next batch; None after the last."""
        return self._requested[0] if self._requested else self._next

    def _requests(self) -> Iterator[Request]:
        """Yield requests to the loader, which takes them before their batches are needed."""
        while self._next is not None:
            self._requested.append(self._next)
            self._next = next(self._rest, None)
            yield self._requested[-1]

    def skip_to(self, request: Request) -> bool:
        """Whether the next batch is that of the request. A new stream first skips the requests before it."""
        if self._batches is None:
            for _ in range(self._MOST_SKIPPED):
                if self._next is None or self._next.is_same(request):
                    break
                self._next = next(self._rest, None)
        return self.request is not None and self.request.is_same(request)

    def take(self, device: torch.device) -> Any:
        """The next batch on a device. The generators are seeded for the forward pass.

        Raises the error that occurred in the worker.
        """
        found = self._next_of_workers()
        request = self._requested.popleft()
        if isinstance(found, _Failed):
            raise found.error
        batch = self._task.move(found, device)
        seed_everything(*request.seed)
        return batch

    def _next_of_workers(self) -> Any:
        if self._batches is None:
            before = set(multiprocessing.active_children())
            self._batches = iter(self._loader)
            self._workers = [each for each in multiprocessing.active_children() if each not in before]
        try:
            return next(self._batches)
        except (ConnectionError, EOFError, FileNotFoundError):
            # The connections of a dying worker are closed a moment before torch can see that it is dead.
            # Torch raises its own error about that, at the latest when that worker's next batch is due.
            if connection.wait([each.sentinel for each in self._workers], _EXIT_TIMEOUT_S):
                while next(self._batches, None) is not None:
                    pass
            raise

    def close(self) -> None:
        """Kill the worker processes, even busy ones: they only read data."""
        with _deaths_ignored():
            if self._workers:
                # The loader locks this event when it ends. A worker that dies with the lock would keep it.
                with self._batches._workers_done_event._cond:  # type: ignore[union-attr]
                    for worker in self._workers:
                        worker.kill()
                    for worker in self._workers:
                        worker.join(_EXIT_TIMEOUT_S)
            # The loader has no other way to end its processes at once.
            self._batches = None
        self._workers = []


@contextmanager
def _deaths_ignored() -> Iterator[None]:
    """Disable torch's SIGCHLD handler, which would raise an error about the killed workers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, before)


@dataclass(frozen=True, slots=True)
class _Failed:
    """The error that occurred while a batch was made."""

    error: Exception


class _Maker(Dataset[Any]):
    """Makes the batch of a request, in a worker process, and pickles it.

    The queue would pickle it in a thread of its own, which drops what it cannot pickle: the rank would wait
    for that batch for ever.
    """

    def __init__(self, task: Task) -> None:
        self._task = task

    def __getitem__(self, request: Any) -> _Pickled | _Failed:
        try:
            return _pickled(_make_batch(self._task, request, torch.device("cpu")), request.split)
        except Exception as error:
            return _Failed(_full_shared_memory(error, request.split) or _sendable(error))


class _Pickled:
    """A pickled batch, which arrives as the batch."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return ForkingPickler.loads, (self.content,)


def _pickled(batch: Any, split: str) -> _Pickled:
    """Pickle a batch, its tensors as handles of shared memory. Raises UserError if that is impossible."""
    pickled = io.BytesIO()
    try:
        ForkingPickler(pickled).dump(batch)
        return _Pickled(pickled.getvalue())
    except MemoryError:
        raise
    except OSError as error:
        if error.errno is not None:
            raise
        raise UserError(
            f"a worker process cannot send tensors through a socket in {tempfile.gettempdir()} (TMPDIR): "
            f"{error}. Set TMPDIR to a folder with a shorter path, or set train.workers=0"
        ) from error
    except Exception as error:
        if isinstance(error, RuntimeError) and _TORCH_FILE in str(error):
            # Of the host, such as too many open files.
            raise
        raise UserError(
            f"a worker process cannot send its batch of {split}: {error}. Leave that out of the batch, or "
            "set train.workers=0"
        ) from error


def _full_shared_memory(error: Exception, split: str) -> OSError | None:
    """The error to raise instead if there was no room for tensors in shared memory; None if there was."""
    if not any(_NO_SHARED_MEMORY in str(each) for each in (error, error.__cause__)):
        return None
    try:
        free = f"{shutil.disk_usage(_SHARED_MEMORY).free / 1e6:,.0f} MB of {_SHARED_MEMORY} are free"
    except OSError as unknown:
        free = str(unknown)
    return OSError(
        errno.ENOSPC,
        f"a worker process has no room for a batch of {split} in shared memory ({free}). Other jobs may "
        "fill it, and a container often has only 64 MB (docker run --shm-size=8g gives more). Or make the "
        "batches smaller, or set train.workers=0",
    )


def _sendable(error: Exception) -> Exception:
    """Convert an error to one that another process can raise even if it lacks the error's class."""
    if isinstance(error, UserError):
        return UserError(str(error))
    is_builtin = type(error).__module__ == "builtins" and type(error)(*error.args).args == error.args
    kept = error if is_builtin and _survives_pickling(error) else _of_a_known_class(error)
    kept.add_note(f"In a worker process:\n{''.join(traceback.format_exception(error))}")
    return kept


def _survives_pickling(error: Exception) -> bool:
    """Whether an error can be sent and received; its arguments may be anything, such as an open file."""
    try:
        ForkingPickler.loads(ForkingPickler.dumps(error))
    except Exception:
        return False
    return True


def _of_a_known_class(error: Exception) -> Exception:
    """Return an error of Python's own, in the class that decides whether the run restarts."""
    name = type(error).__name__
    if isinstance(error, MemoryError):
        return MemoryError(f"{name}: {error}")
    if isinstance(error, OSError) and error.errno is not None:
        return OSError(error.errno, f"{name}: {error.strerror}", error.filename and str(error.filename))
    return RuntimeError(f"{name}: {error}")


def _make_batch(task: Task, request: Request, device: torch.device) -> Any:
    seed_everything(*request.seed)
    return task.collate(request.split, request.samples, device)


def _unchanged(batch: Any) -> Any:
    return batch


def _settle(worker: int) -> None:
    """Make a worker end with its rank and ignore the signals that ask the rank to stop."""
    parent = os.getppid()
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal_after_parent(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
