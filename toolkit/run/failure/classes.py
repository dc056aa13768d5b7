"""Failure classes: how to recognize one, what the user should do, and whether a retry makes sense."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from toolkit.errors import (
    CheckpointError,
    DeviceError,
    NoProgress,
    RanksDiverged,
    RendezvousError,
    TrainingDiverged,
    UserError,
)

if TYPE_CHECKING:
    from toolkit.config.sections import Setting

ADDRESS_IN_USE = "address_in_use"
PEER_LOST, KILLED, HANG, NO_PROGRESS, LAUNCH = "peer_lost", "killed", "hang", "no_progress", "launch"
DEVICE, COMMUNICATION, IO, FULL_DISK = "device", "communication", "io", "full_disk"
#: Memory ran out: the program got an error, or the kernel killed it.
OUT_OF_MEMORY, OOM_KILLED = "out_of_memory", "oom_killed"
SEGFAULT = "segfault"
#: Failures that the user has to correct.
INPUT = "input"
#: Failures that a sample may cause.
OF_A_SAMPLE = ("exception", "diverged")


class Policy(Enum):
    """The consequence of a failure."""

    RETRY = "of the infrastructure: start again"
    ONCE = "start again, but not after the same failure at the same step"
    STOP = "of the user: stop, with the error on top"
    HOLD = "stop until somebody has looked at it"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureClass:
    """A class of failures.

    policy       the consequence
    advice       what the user should do
    setting      the setting to change, if a section of another package may have a key for it
    blames_host  whether the host is suspect
    """

    policy: Policy
    advice: str
    setting: Setting | None = None
    blames_host: bool = False


_RESUME = "stk resume continues from the last checkpoint."

FAILURE_CLASSES: dict[str, FailureClass] = {
    # -- of the infrastructure
    KILLED: FailureClass(
        policy=Policy.RETRY,
        blames_host=True,
        advice="An unexplained SIGKILL often means that the machine ran out of memory: see its kernel log. "
        + _RESUME,
    ),
    PEER_LOST: FailureClass(
        policy=Policy.RETRY,
        advice=f"Another rank exited without an error message; see the end of its log. {_RESUME}",
    ),
    COMMUNICATION: FailureClass(
        policy=Policy.RETRY,
        advice="NCCL could not reach another rank: check the network between the hosts and their GPUs "
        f"(NCCL_DEBUG=INFO logs more). {_RESUME}",
    ),
    HANG: FailureClass(
        policy=Policy.RETRY,
        blames_host=True,
        advice="The rank's log has the stacks of all its threads. If a single operation takes that long, "
        "raise train.hang_timeout_s, and with it train.collective_timeout_s to at least 4/3 of that.",
    ),
    "node_failure": FailureClass(
        policy=Policy.RETRY,
        blames_host=True,
        advice=f"The host was lost. {_RESUME}",
        setting="excluded_hosts",
    ),
    "ranks_diverged": FailureClass(
        policy=Policy.RETRY,
        blames_host=True,
        advice="The same work gave different weights: a processor or its memory may be faulty, or the task "
        "uses its own random numbers. Checkpoints after the last good comparison are set aside.",
    ),
    DEVICE: FailureClass(
        policy=Policy.RETRY,
        blames_host=True,
        advice=f"The GPU or its driver failed, not the program. {_RESUME}",
        setting="excluded_hosts",
    ),
    LAUNCH: FailureClass(
        policy=Policy.RETRY,
        advice=f"The job's log names the host on which nothing could be started. {_RESUME}",
        setting="excluded_hosts",
    ),
    "rendezvous": FailureClass(
        policy=Policy.RETRY, advice="Check the network between the hosts, then resume the run."
    ),
    ADDRESS_IN_USE: FailureClass(
        policy=Policy.RETRY, advice=f"Another process uses the port; a new attempt takes another. {_RESUME}"
    ),
    IO: FailureClass(
        policy=Policy.RETRY,
        advice="Check the file system and its free space, or the network, then resume the run.",
    ),
    # -- of the user
    OOM_KILLED: FailureClass(
        policy=Policy.ONCE,
        advice="The kernel killed it because memory ran out: request more, or start fewer processes on a "
        f"host. {_RESUME}",
        setting="memory",
    ),
    SEGFAULT: FailureClass(
        policy=Policy.ONCE,
        advice="Stacks near the end of the rank's log, if it has some, show where each thread was; 'Current "
        f"thread', if there is one, called the library or extension at fault. {_RESUME}",
    ),
    "diverged": FailureClass(
        policy=Policy.ONCE, advice="Change the experiment: it would diverge at the same step again."
    ),
    INPUT: FailureClass(policy=Policy.STOP, advice="Correct what the message names and start the run again."),
    OUT_OF_MEMORY: FailureClass(
        policy=Policy.STOP,
        advice="Request more memory, or raise train.accumulation, which needs less (that makes another run).",
    ),
    "not_deterministic": FailureClass(
        policy=Policy.STOP,
        advice="CUDA has no deterministic form of the operation that the message names: use another one, or "
        "set train.deterministic=false (that makes another run, with different bytes each time).",
    ),
    "import": FailureClass(
        policy=Policy.STOP,
        advice="Install what is missing where the job runs, or add it if it is your own file. Then resume "
        "the run.",
    ),
    FULL_DISK: FailureClass(
        policy=Policy.STOP, advice=f"Make room in the file system that the message names. {_RESUME}"
    ),
    "checkpoint": FailureClass(
        policy=Policy.STOP,
        advice="Do what the message says, then resume the run. If a save has failed, check space and "
        "permissions of the run's folder.",
    ),
    "exception": FailureClass(
        policy=Policy.STOP,
        advice="The end of its log (stk logs) has the error; a traceback there names the line.",
    ),
    NO_PROGRESS: FailureClass(
        policy=Policy.HOLD,
        advice="Fix the problem that the message names; stk resume then restarts the run and its counters.",
    ),
}

_PEER_LOST_WORDS = (
    "Connection closed by peer",
    "Connection reset by peer",
    "connection was closed",
    "Connection was likely closed",
    "Broken pipe",
    # Our own message, from ranks that wait for rank 0 (toolkit.distributed.secure.store).
    "rank 0's store is gone",
    # Timeouts of gloo and NCCL.
    "Timed out waiting",
    "Application timeout caused pair closure",
    "remote process exited",
    "ncclRemoteError",
    "NCCL communicator was aborted",
)
#: Messages of CUDA, cuBLAS, cuDNN, Triton and NCCL if torch's allocator did not fail first, of its allocator
#: for host memory, and of a fork that the kernel refuses.
_MEMORY_WORDS = (
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUDA driver error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "Triton Error [CUDA]: out of memory",
    "Cuda failure 'out of memory'",
    "Cuda failure 2 'out of memory'",
    "can't allocate memory",
    "not enough memory",
)
_DEVICE_WORDS = (
    "uncorrectable ECC error",
    "uncorrectable NVLink error",
    "hardware error",
    "fallen off the bus",
    "GPU is lost",
    "unspecified launch failure",
    "no CUDA-capable device is detected",
    "CUDA driver initialization failed",
    "CUDA-capable device(s) is/are busy or unavailable",
)
#: Torch's message about a worker of a DataLoader that got SIGKILL, as from the kernel.
_WORKER_KILLED = "is killed by signal: Killed"
#: A CUDA kernel at fault, for example with an index out of range.
_PROGRAM_WORDS = ("device-side assert triggered", "an illegal memory access", "misaligned address")
_COMMUNICATION_WORDS = (
    "Watchdog caught collective operation timeout",
    "ProcessGroupNCCL watchdog hang",
    "unhandled system error",
    "ncclSystemError",
    "ncclInternalError",
    "Some NCCL operations have failed or timed out",
)
#: Of torch.save if a file could not be written; it does not say why.
_TORCH_SAVE_WORDS = ("PytorchStreamWriter failed writing", "] . unexpected pos ")
#: (class, words); the first match counts, causes before consequences. A program may log a full disk and go
#: on, so that counts only without another cause. A segmentation fault has a signal rather than words.
_WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (OUT_OF_MEMORY, _MEMORY_WORDS),
    (OOM_KILLED, (_WORKER_KILLED,)),
    (DEVICE, _DEVICE_WORDS),
    ("exception", _PROGRAM_WORDS),
    (SEGFAULT, ()),
    (PEER_LOST, _PEER_LOST_WORDS),
    (COMMUNICATION, _COMMUNICATION_WORDS),
    (IO, ("No space left on device", "Disk quota exceeded", *_TORCH_SAVE_WORDS)),
)
#: Of torch about its port. One of the user's own, which raises an OSError, stays taken.
PORT_WORDS = ("EADDRINUSE", "Address already in use")
#: Messages of torch under use_deterministic_algorithms, about its own operations and cuBLAS.
_NOT_DETERMINISTIC_WORDS = ("does not have a deterministic implementation", "operation is not deterministic")
#: A full disk, and a quota that is used up.
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
#: Faults of a disk or the network.
IO_ERRORS = NO_ROOM | {
    errno.EIO,
    errno.ESTALE,
    errno.EROFS,
    errno.EREMOTEIO,
    errno.ENETDOWN,
    errno.ENETUNREACH,
    errno.EHOSTUNREACH,
    errno.ETIMEDOUT,
    errno.ECONNRESET,
    errno.ECONNREFUSED,
    errno.ENFILE,
}

#: Classes that the end of a log shows, causes before consequences.
CAUSES = tuple(name for name, _ in _WORDS)


def _is(*kinds: type[BaseException]) -> Callable[[BaseException], bool]:
    return lambda error: isinstance(error, kinds)


def class_by_words(text: str) -> tuple[str, str] | None:
    """The class that a library's message means, and the matching words; None without a match."""
    found = ((name, word) for name, words in _WORDS for word in words if word in text)
    return next(found, None)


def _says(*words: str) -> Callable[[BaseException], bool]:
    """Match by words, because torch raises one type of error for many causes."""
    return lambda error: isinstance(error, RuntimeError) and any(word in str(error) for word in words)


def _worker_was_killed(error: BaseException) -> bool:
    """Whether a worker of a DataLoader got SIGKILL; the cause says so if a batch was awaited."""
    return any(_says(_WORKER_KILLED)(each) for each in (error, error.__cause__) if each is not None)


def _out_of_memory(error: BaseException) -> bool:
    is_reported = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return is_reported or _errno(error) == errno.ENOMEM or _says(*_MEMORY_WORDS)(error)


def _lacks_module(error: BaseException) -> bool:
    """Whether the user's file imports a module that is missing; the message names the line."""
    return isinstance(error, UserError) and isinstance(error.__cause__, ImportError)


def _errno(error: BaseException) -> int | None:
    return error.errno if isinstance(error, OSError) else None


def disk_errno(error: BaseException) -> int | None:
    """The errno of an OSError, or of the OSError behind a CheckpointError; None for other errors."""
    return _errno((error.__cause__ or error) if isinstance(error, CheckpointError) else error)


#: (class, test); the first test that matches decides.
_TESTS: tuple[tuple[str, Callable[[BaseException], bool]], ...] = (
    ("import", _lacks_module),
    (INPUT, _is(UserError)),
    ("diverged", _is(TrainingDiverged)),
    ("ranks_diverged", _is(RanksDiverged)),
    (NO_PROGRESS, _is(NoProgress)),
    (DEVICE, _is(DeviceError)),
    ("rendezvous", _is(RendezvousError)),
    # A save failed for lack of room: another attempt would fail, too.
    (FULL_DISK, lambda error: isinstance(error, CheckpointError) and disk_errno(error) in NO_ROOM),
    (IO, lambda error: disk_errno(error) in IO_ERRORS),
    ("checkpoint", _is(CheckpointError)),
    (OUT_OF_MEMORY, _out_of_memory),
    (ADDRESS_IN_USE, _says(*PORT_WORDS)),
    (OOM_KILLED, _worker_was_killed),
    (DEVICE, _says(*_DEVICE_WORDS)),
    (PEER_LOST, _says(*_PEER_LOST_WORDS)),
    (COMMUNICATION, _says(*_COMMUNICATION_WORDS)),
    ("not_deterministic", _says(*_NOT_DETERMINISTIC_WORDS)),
    ("import", _is(ImportError)),
    ("exception", _is(BaseException)),
)


def class_of(error: BaseException) -> str:
    """The class of a failure."""
    return next(name for name, fits in _TESTS if fits(error))


def advice_on(name: str) -> str:
    """Return advice on a failure of this class."""
    # Slow to import, and readers of records need no advice.
    from toolkit.config.sections import with_hint

    found = FAILURE_CLASSES[name]
    return found.advice if found.setting is None else with_hint(found.advice, found.setting)
