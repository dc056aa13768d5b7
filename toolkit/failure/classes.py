"""The classes of failures: how to tell one, what people should do, and whether a new start is worth it."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from toolkit.errors import (
    CheckpointError,
    NoProgress,
    RanksDiverged,
    RendezvousError,
    TrainingDiverged,
    UserError,
)

PEER_LOST, KILLED, HANG, NO_PROGRESS, LAUNCH = "peer_lost", "killed", "hang", "no_progress", "launch"
#: Memory that ran out as the program itself was told, and as the kernel ended it for that.
OUT_OF_MEMORY, OOM_KILLED = "out_of_memory", "oom_killed"


class Policy(Enum):
    """What follows from a failure."""

    RETRY = "of the infrastructure: start again"
    ONCE = "start again, but not after the same failure at the same step"
    STOP = "of the user: stop, with the error on top"
    HOLD = "stop until somebody has looked at it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A class of failures: what follows, what people should do, and whether the culprit's host is suspect."""

    policy: Policy
    advice: str
    blames_host: bool = False


_RESUME = "stk resume goes on from the last checkpoint."

KINDS: dict[str, Kind] = {
    # -- of the infrastructure
    KILLED: Kind(
        policy=Policy.RETRY,
        blames_host=True,
        advice="SIGKILL without a cause is often the machine running out of memory: its kernel log tells. "
        + _RESUME,
    ),
    PEER_LOST: Kind(
        policy=Policy.RETRY,
        advice=f"Another rank died without a word; its log's last lines may tell. {_RESUME}",
    ),
    HANG: Kind(
        policy=Policy.RETRY,
        blames_host=True,
        advice="The rank's log shows where all its threads stood. If it works on one thing for that long, "
        "raise train.hang_timeout_s.",
    ),
    "node_failure": Kind(
        policy=Policy.RETRY,
        blames_host=True,
        advice=f"The host was lost; resources.exclude avoids it. {_RESUME}",
    ),
    "ranks_diverged": Kind(
        policy=Policy.RETRY,
        blames_host=True,
        advice="Equal work gave unequal weights: a processor or its memory may be faulty, or the task "
        "draws numbers of its own. The last checkpoint before it is good.",
    ),
    "device": Kind(
        policy=Policy.RETRY,
        blames_host=True,
        advice=f"The GPU or its driver failed, not the program; resources.exclude avoids the host. {_RESUME}",
    ),
    LAUNCH: Kind(
        policy=Policy.RETRY,
        advice="The job's log names the host on which nothing could be started; resources.exclude avoids "
        f"it. {_RESUME}",
    ),
    "rendezvous": Kind(
        policy=Policy.RETRY, advice="Check the network between the hosts, then resume the run."
    ),
    "address_in_use": Kind(
        policy=Policy.RETRY, advice=f"Another process has the port; a new start takes another one. {_RESUME}"
    ),
    "io": Kind(
        policy=Policy.RETRY,
        advice="Check the file system that the message names, then resume the run.",
    ),
    # -- of the user
    OOM_KILLED: Kind(
        policy=Policy.ONCE,
        advice="The kernel ended it for want of memory: ask for more (resources.mem), or start fewer "
        f"processes on a host. {_RESUME}",
    ),
    "diverged": Kind(
        policy=Policy.ONCE, advice="Change the experiment: it would diverge at the same step again."
    ),
    "input": Kind(policy=Policy.STOP, advice="Correct what the message names and start the run again."),
    OUT_OF_MEMORY: Kind(
        policy=Policy.STOP,
        advice="Ask for more memory, or raise train.accumulation, which needs less (that makes another run).",
    ),
    "import": Kind(
        policy=Policy.STOP, advice="Install what is missing where the job runs, then resume the run."
    ),
    "checkpoint": Kind(
        policy=Policy.STOP, advice="Check space and rights of the run folder, then resume the run."
    ),
    "exception": Kind(policy=Policy.STOP, advice="The traceback shows the line at fault."),
    NO_PROGRESS: Kind(
        policy=Policy.HOLD,
        advice="Cure what the message names, then stk resume starts it with a clean count.",
    ),
}

_PEER_LOST_WORDS = (
    "Connection closed by peer",
    "Connection reset by peer",
    "connection was closed",
    "Connection was likely closed",
    "Broken pipe",
    # gloo's and NCCL's patience with a silent peer.
    "Timed out waiting",
    "Application timeout caused pair closure",
    "remote process exited",
    "NCCL communicator was aborted",
)
_DEVICE_WORDS = (
    "uncorrectable ECC error",
    "hardware error",
    "fallen off the bus",
    "unspecified launch failure",
    "CUDA driver initialization failed",
    "CUDA-capable device(s) is/are busy or unavailable",
)
#: What a disk or the network does; not every system has all of them.
_IO_ERRORS = {
    getattr(errno, name, None)
    for name in (
        "EIO",
        "ENOSPC",
        "EDQUOT",
        "ESTALE",
        "EROFS",
        "EREMOTEIO",
        "ENETDOWN",
        "ENETUNREACH",
        "EHOSTUNREACH",
        "ETIMEDOUT",
        "ECONNRESET",
        "ECONNREFUSED",
        "ENFILE",
    )
} - {None}


def _is(*kinds: type[BaseException]) -> Callable[[BaseException], bool]:
    return lambda error: isinstance(error, kinds)


def _says(*words: str) -> Callable[[BaseException], bool]:
    """Told by its words: torch has one type of error for many causes."""
    return lambda error: isinstance(error, RuntimeError) and any(word in str(error) for word in words)


def _out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def _out_of_host_memory(error: BaseException) -> bool:
    # torch's own allocator, and a fork that the kernel refuses.
    return _says("can't allocate memory", "not enough memory")(error) or _errno(error) == errno.ENOMEM


def _errno(error: BaseException) -> int | None:
    return error.errno if isinstance(error, OSError) else None


def _io(error: BaseException) -> bool:
    """Of an OSError only what the disk or the network did: a file that is missing is the user's."""
    cause = error.__cause__ if isinstance(error, CheckpointError) else error
    return cause is not None and _errno(cause) in _IO_ERRORS


def _address_in_use(error: BaseException) -> bool:
    return _errno(error) == errno.EADDRINUSE or _says("EADDRINUSE", "Address already in use")(error)


#: (class, test), the first that fits.
_TESTS: tuple[tuple[str, Callable[[BaseException], bool]], ...] = (
    ("input", _is(UserError)),
    ("diverged", _is(TrainingDiverged)),
    ("ranks_diverged", _is(RanksDiverged)),
    (NO_PROGRESS, _is(NoProgress)),
    ("rendezvous", _is(RendezvousError)),
    ("io", _io),
    ("checkpoint", _is(CheckpointError)),
    (OUT_OF_MEMORY, _out_of_memory),
    (OUT_OF_MEMORY, _out_of_host_memory),
    ("address_in_use", _address_in_use),
    (PEER_LOST, _says(*_PEER_LOST_WORDS)),
    ("device", _says(*_DEVICE_WORDS)),
    ("import", _is(ImportError)),
    ("exception", _is(BaseException)),
)


def describe(error: BaseException) -> tuple[str, str]:
    """The class of a failure and what to do about it."""
    name = next(name for name, fits in _TESTS if fits(error))
    return name, KINDS[name].advice
