"""Batches prefetched by worker processes: their order, failures and shutdown."""

from __future__ import annotations

import errno
import multiprocessing.util
import os
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from multiprocessing.synchronize import Event
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
import torch

from tests.support.mounts import give_up
from tests.support.patience import PATIENCE_S
from tests.support.registering import ROOT
from toolkit.errors import UserError
from toolkit.run.failure.classes import class_of
from toolkit.training import batch_workers
from toolkit.training.batch_workers import Ahead, OnDemand, Request, make_batches

CPU = torch.device("cpu")


class Own(Exception):
    """An exception that needs more than its message."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


class LostFile(OSError):
    """An error of a library."""


class TooLarge(MemoryError):
    """An error of a library, such as NumPy's."""


class Numbers:
    """A task whose batches are the indices, a random number, and the process that made them."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> Any:
        if self.failure is not None and 3 in indices:
            raise self.failure
        return indices.tolist(), float(torch.rand(())), os.getpid()

    def move(self, batch: Any, device: torch.device) -> Any:
        return batch


def _requests(numbers: Sequence[int] = range(6)) -> Iterator[Request]:
    return (Request("train", (0, number, 0), np.arange(number, number + 2)) for number in numbers)


def _content(batch: Any) -> tuple[list[int], float]:
    return batch[0], batch[1]


@pytest.mark.parametrize("workers", [1, 3])
def test_batches_of_workers_are_in_order_and_equal_those_of_one_process(workers: int) -> None:
    task = Numbers()
    alone = list(make_batches(task, _requests(), CPU, 0))
    ahead = list(make_batches(task, _requests(), CPU, workers))
    assert [*map(_content, ahead)] == [*map(_content, alone)]
    assert {batch[2] for batch in alone} == {os.getpid()}
    assert os.getpid() not in {batch[2] for batch in ahead}


def test_an_unexpected_request_restarts_the_prefetching() -> None:
    """For example, samples were quarantined."""
    task, begun = Numbers(), []

    def upcoming() -> Iterator[Request]:
        begun.append(True)
        return _requests(range(2, 6) if len(begun) == 1 else (3, 5))

    ahead = Ahead(2, upcoming)
    wanted = list(_requests((2, 5)))
    found = [_content(ahead.take(task, request, CPU)) for request in wanted]
    assert found == [_content(OnDemand().take(task, request, CPU)) for request in wanted]
    assert len(begun) == 2
    ahead.close()


def test_a_stream_that_begins_within_a_step_skips_to_the_request_under_python_O(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Which executes no assert statements."""
    optimized = ModuleType(batch_workers.__name__)
    monkeypatch.setitem(sys.modules, optimized.__name__, optimized)
    exec(compile(Path(batch_workers.__file__).read_text(), "", "exec", optimize=1), vars(optimized))
    requests = [optimized.Request("train", (number,), np.arange(number, number + 1)) for number in range(3)]
    with closing(optimized.Ahead(1, lambda: iter(requests))) as ahead:
        assert ahead.take(Numbers(), requests[2], CPU)[0] == [2]


class Locked(Numbers):
    """A lock in each batch."""

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> Any:
        return torch.ones(2), {"of": [threading.Lock()]}


class Computed(Numbers):
    """A tensor that was computed from weights."""

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> Any:
        return [torch.ones(2, requires_grad=True) * 2]


class Large(Numbers):
    """A batch that memory does not suffice to send."""

    def __reduce__(self) -> tuple[object, ...]:
        raise MemoryError

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> Any:
        return self


@pytest.mark.parametrize(
    "task, error, words",
    [
        (Locked(), UserError, "train: cannot pickle '_thread.lock'"),
        (Computed(), UserError, "non-leaf tensor"),
        (Large(), MemoryError, "worker process"),
    ],
)
def test_a_batch_that_cannot_be_sent_is_refused_by_its_type(
    task: Numbers, error: type[Exception], words: str
) -> None:
    assert list(make_batches(task, _requests(), CPU, 0))
    with pytest.raises(error, match=words):
        next(make_batches(task, _requests(), CPU, 1))


class Tensors(Numbers):
    """A tensor in each batch."""

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> Any:
        return {"of": torch.as_tensor(indices)}


@pytest.mark.skipif(
    hasattr(multiprocessing.util, "_get_base_temp_dir"), reason="this Python puts its sockets elsewhere"
)
def test_a_temporary_folder_with_a_path_too_long_for_a_socket_is_refused_only_for_tensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    # An earlier test may have made a folder for sockets.
    monkeypatch.setitem(multiprocessing.current_process()._config, "tempdir", None)  # type: ignore[attr-defined]
    assert list(make_batches(Numbers(), _requests(), CPU, 1))
    with pytest.raises(UserError, match=rf"{re.escape(str(folder))} \(TMPDIR\): AF_UNIX path too long"):
        next(make_batches(Tensors(), _requests(), CPU, 1))


class Wide(Numbers):
    """Tensors of 400 kB."""

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> Any:
        return torch.ones(100_000)


def fill_shared_memory() -> None:
    """Print the error of Wide, and its class."""
    with pytest.raises(OSError, match="shared memory") as raised:
        next(make_batches(Wide(), _requests(), CPU, 1))
    print(class_of(raised.value), raised.value)


def test_shared_memory_that_is_full_is_an_error_of_the_host_with_advice() -> None:
    """Torch cannot send the batch then: without the error, the rank would wait for it."""
    unshare = ["unshare", "--map-root-user", "--mount", "sh", "-ec"]
    small = "mount -t tmpfs -o size=256k tmpfs /dev/shm"
    if done := subprocess.run([*unshare, small], capture_output=True, text=True, check=False).stderr:
        give_up(f"this machine lets its users mount nothing: {done}")
    code = f"from {__name__} import {fill_shared_memory.__name__}; {fill_shared_memory.__name__}()"
    command = [*unshare, f'{small}; exec "$@"', "sh", sys.executable, "-c", code]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT).stdout
    assert re.fullmatch(r"io .* train .*/dev/shm are free.* train\.workers=0\n", said)


class Refused(Wide):
    """Tensors for which the kernel refuses shared memory."""

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> Any:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        return super().collate(split, indices, device)


def test_shared_memory_that_the_kernel_refuses_is_not_called_a_fault_of_the_batch() -> None:
    with pytest.raises(RuntimeError) as raised:
        next(make_batches(Refused(), _requests(), CPU, 1))
    assert class_of(raised.value) != "input"


class Slow(Numbers):
    """Never done with the batch that has the number 3."""

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> Any:
        if 3 in indices:
            threading.Event().wait()
        return super().collate(split, indices, device)


def test_closing_ends_a_busy_worker_at_once() -> None:
    ahead = Ahead(1, _requests)
    worker = psutil.Process(ahead.take(Slow(), next(_requests()), CPU)[2])
    ahead.close()
    assert not worker.is_running()
    # What is done next hears nothing of that.
    assert list(make_batches(Numbers(), _requests(), CPU, 1))


def test_closing_does_not_deadlock_if_a_worker_holds_the_lock_of_the_loader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker checks the event of the loader before each batch; in this test it holds the lock for long."""
    held, holds = os.pipe()
    parent = os.getpid()

    def is_set(event: Event, original: Callable[[Event], bool] = Event.is_set) -> bool:
        if os.getpid() != parent:
            with event._cond:  # type: ignore[attr-defined]
                os.write(holds, b".")
                select.select([], [], [], 0.3)
        return original(event)

    monkeypatch.setattr(Event, "is_set", is_set)
    ahead, (first, *_) = Ahead(1, _requests), _requests()
    ahead.take(Numbers(), first, CPU)
    # The first was for that batch, and the next one is for a batch that is made ahead.
    assert len(os.read(held, 1) + os.read(held, 1)) == 2
    stood_still: list[bool] = []

    def let_go(lock: Any = ahead._stream._batches._workers_done_event._cond) -> None:
        stood_still.append(True)
        lock.release()

    timer = threading.Timer(PATIENCE_S, let_go)
    timer.start()
    ahead.close()
    timer.cancel()
    assert not stood_still


def test_random_state_after_a_batch_is_the_same_with_and_without_workers() -> None:
    task, (request,) = Numbers(), _requests((4,))
    OnDemand(seeds_again=True).take(task, request, CPU)
    expected = torch.rand(3)
    ahead = Ahead(1, lambda: _requests((4,)))
    ahead.take(task, request, CPU)
    assert torch.equal(torch.rand(3), expected)
    ahead.close()


@pytest.mark.parametrize("workers", [0, 1])
def test_random_state_while_scoring_is_the_same_with_and_without_workers(workers: int) -> None:
    torch.manual_seed(workers)
    drawn = [float(torch.rand(())) for _ in make_batches(Numbers(), _requests((4, 5)), CPU, workers)]
    made = [float(each[1]) for each in make_batches(Numbers(), _requests((4, 5)), CPU, 0)]
    # Numbers draws one number after the same seed.
    assert drawn == made


@pytest.mark.parametrize(
    "failure, expected",
    [
        (UserError("digits.py:3: no such file"), "UserError: digits.py:3: no such file"),
        (KeyError("width"), "KeyError: 'width'"),
        (Own(1, 2), "RuntimeError: Own: 1 and 2"),
        (ValueError("row 7", Own(1, 2)), "RuntimeError: ValueError: ('row 7', Own('1 and 2'))"),
        (ValueError("row 7", lambda: 0), "RuntimeError: ValueError: ('row 7', <function "),
        (LostFile(errno.ESTALE, "Stale file handle", "7.png"), "OSError: [Errno 116] LostFile: Stale file"),
        (TooLarge("9 TiB"), "MemoryError: TooLarge: 9 TiB"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "UnicodeDecodeError: "),
        (FileNotFoundError(2, "No such file", "1.png"), "FileNotFoundError: [Errno 2] No such file: '1.png'"),
    ],
)
def test_a_failure_in_a_worker_is_raised_in_the_rank_with_its_traceback(
    failure: Exception, expected: str
) -> None:
    batches = make_batches(Numbers(failure), _requests(), CPU, 2)
    found = [next(batches)[0] for _ in range(2)]
    with pytest.raises((UserError, ValueError, KeyError, OSError, MemoryError, RuntimeError)) as raised:
        next(batches)
    assert found == [[0, 1], [1, 2]]
    assert f"{type(raised.value).__name__}: {raised.value}".startswith(expected)
    if not isinstance(failure, UserError):
        assert "in collate" in "".join(raised.value.__notes__)


@pytest.mark.parametrize("is_dead", [True, False])
def test_a_broken_connection_to_a_worker_is_reported_as_its_death_only_if_it_dies(
    is_dead: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connections of a dying worker are closed a moment before torch can see that it is dead."""
    answers = iter([ConnectionResetError(), RuntimeError("DataLoader worker is killed")])

    class Batches:
        def __next__(self) -> Any:
            raise next(answers)

    stream = batch_workers._Stream(Numbers(), _requests(), 1)
    sentinel, until_it_dies = os.pipe()
    if is_dead:
        os.close(until_it_dies)
    monkeypatch.setattr(stream, "_batches", Batches())
    monkeypatch.setattr(stream, "_workers", [SimpleNamespace(sentinel=sentinel)])
    monkeypatch.setattr(batch_workers, "_EXIT_TIMEOUT_S", 0.0)
    with pytest.raises(RuntimeError if is_dead else ConnectionResetError):
        stream.take(CPU)
    os.close(sentinel)


def test_stop_signals_do_not_end_the_workers() -> None:
    batches = make_batches(Numbers(), _requests(range(40)), CPU, 1)
    process = next(batches)[2]
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2):
        os.kill(process, number)
    assert {batch[2] for batch in batches} == {process}


def test_workers_end_with_their_batches() -> None:
    batches = make_batches(Numbers(), _requests(range(40)), CPU, 1)
    process = psutil.Process(next(batches)[2])
    batches.close()  # type: ignore[attr-defined]
    process.wait(PATIENCE_S)
