"""Real processes as the ranks of a world, forked from a server that has imported torch once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.patience import PATIENCE_S
from toolkit.run.fence import Fenced
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World

if TYPE_CHECKING:
    from toolkit.distributed.process_group import Group

#: The error of a rank that did not end in time.
NO_ANSWER = "no answer in time"

_CONTEXT = multiprocessing.get_context("forkserver")
#: Those of torch and transformers take a rank more than a second of CPU each to import; pytest and
#: hypothesis, which its test's module imports, almost half a second; the workloads a quarter.
_PRELOADED = (
    "toolkit.training.worker",
    "torch._dynamo",
    "torch.utils.tensorboard",
    "pytest",
    "hypothesis.strategies",
    "tests.toolkit.support.tiny_training",
    "tests.toolkit.support.preloaded",
)
_OF_WORKLOADS = ("transformers.models.bert.modeling_bert",)
_CONTEXT.set_forkserver_preload([*_PRELOADED, *(_OF_WORKLOADS if find_spec("toolkit.workloads") else ())])


@contextmanager
def joined(world: World, folder: Path) -> Iterator[Group]:
    """The group of the ranks, on the CPU."""
    from toolkit.config.schema import Train
    from toolkit.distributed import process_group  # imports torch

    train = Train(device="cpu", collective_timeout_s=PATIENCE_S)
    with process_group.join(RunDir(folder), world, train) as group:
        yield group


@dataclass(frozen=True, slots=True)
class Ended:
    """How a rank ended: what its function returned or raised, and the exit status of its process."""

    value: Any
    error: str
    exit_status: int | None


def worlds(size: int, nonce: str = "") -> list[World]:
    """The worlds of all ranks of one attempt on this machine."""
    nonce = nonce or uuid.uuid4().hex
    return [
        World(rank=rank, size=size, local_rank=rank, local_size=size, nonce=nonce) for rank in range(size)
    ]


@dataclass(frozen=True, slots=True)
class Started:
    """A rank at work: its process, and where its answer will come.

    handle  of the process itself, whose number may by now be another one's; None if it had ended at once
    """

    process: Any
    receiver: Connection
    handle: int | None

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the rank has ended."""
        if self.handle is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.handle, number)

    def close(self) -> None:
        """Give the handle back."""
        if self.handle is not None:
            os.close(self.handle)


def start_ranks(size: int, function: Callable[..., Any], *arguments: Any) -> list[Started]:
    """Call function(world, *arguments) in so many processes at once, and do not wait for them."""
    started = []
    for world in worlds(size):
        receiver, sender = _CONTEXT.Pipe(duplex=False)
        process = _CONTEXT.Process(target=_rank, args=(sender, world, function, arguments))
        process.start()
        # Or the pipe would not end with the process.
        sender.close()
        assert process.pid is not None
        started.append(Started(process, receiver, _handle(process.pid)))
    return started


def _handle(pid: int) -> int | None:
    # The server of the processes, whose children they are, may have buried one that ended at once.
    with suppress(ProcessLookupError):
        return os.pidfd_open(pid)
    return None


def await_ranks(started: Sequence[Started], timeout_s: float = PATIENCE_S) -> list[Ended]:
    """How each rank ended, by rank; those that have not after so many seconds are killed."""
    deadline = time.monotonic() + timeout_s
    ended = []
    for rank in started:
        answered = rank.receiver.poll(max(0.0, deadline - time.monotonic()))
        value, error = _answer(rank.receiver) if answered else (None, NO_ANSWER)
        rank.process.join(max(0.1, deadline - time.monotonic()))
        if rank.process.is_alive():
            rank.process.kill()
            rank.process.join()
        rank.close()
        ended.append(Ended(value, error, rank.process.exitcode))
    return ended


def run_ranks(size: int, function: Callable[..., Any], *arguments: Any) -> list[Ended]:
    """Call function(world, *arguments) in so many processes at once; how each ended, by rank."""
    return await_ranks(start_ranks(size, function, *arguments))


def in_ranks(size: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What function(world, *arguments) returns in so many processes; an error in one fails the test."""
    ended = run_ranks(size, function, *arguments)
    errors = [f"rank {rank}: {end.error}" for rank, end in enumerate(ended) if end.error]
    assert not errors, "\n".join(errors)
    return [end.value for end in ended]


def assert_ended_by_rank_1(ended: Sequence[Ended], message: str) -> None:
    """Rank 1 raised a ValueError, and no other rank waits for it: each ends with its group's error."""
    assert ended[1].error == f"ValueError: {message}"
    for rank, end in enumerate(ended):
        assert end.error not in ("", NO_ANSWER), rank
        assert rank == 1 or end.error.startswith(("RuntimeError", "DistBackendError")), end.error


def _answer(receiver: Connection) -> tuple[Any, str]:
    try:
        answer: tuple[Any, str] = receiver.recv()
        return answer
    except EOFError:
        return None, "ended without an answer"


def _rank(sender: Connection, world: World, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What a rank prints is not shown here.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    status = 0
    try:
        sender.send((function(world, *arguments), ""))
    except BaseException as error:
        sender.send((None, f"{type(error).__name__}: {error}"))
        if isinstance(error, Fenced):
            # As in a job, where the watchdog may find the fence first or the next write does.
            status = error.exit_code
    sys.stdout.flush()
    # Without the clean-up of the interpreter, which may wait for threads of a broken group.
    os._exit(status)
