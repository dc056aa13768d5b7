"""The exceptions for users, with their exit codes (toolkit.exit_codes).

    StkError
    ├── UserError               2   the user's input is wrong
    │   ├── ConfigError             faults in the experiment file or the overrides
    │   ├── DataError               the data cannot be read as described
    │   ├── RunNotFound             no run, or more than one, matches that name
    │   ├── RunBusy                 the run is live, so it cannot be started again
    │   └── UntrustedFolder         others own or may write files to be executed
    ├── SchedulerError          3   Slurm refused or cannot be reached
    │   ├── SlurmUnavailable        no command, no controller, or no answer in time
    │   │   └── AnswerLost          the request may have been carried out (slurm.client.programs)
    │   └── SlurmRefused            Slurm's own words, or a limit found before the request
    └── RunFailed               4   the run itself failed
        ├── RendezvousError         the ranks did not find each other
        ├── DeviceError             the GPU of a host cannot be used
        ├── CheckpointError         no checkpoint could be loaded or written
        │   └── OtherIdentity           it is of another experiment or data (toolkit.checkpoint.verification)
        ├── RunCancelled            the run was ended before it was done
        ├── TrainingDiverged        the loss is not a finite number
        ├── RanksDiverged           ranks that must hold the same weights do not
        └── NoProgress              attempt after attempt without a step

The command line turns each into its message and exit code; anything else is a bug and keeps its
stack trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.exit_codes import ExitCode


class StkError(Exception):
    """Base of all errors that carry a message for the user."""

    exit_code = ExitCode.FAILED


class UserError(StkError):
    """The input is wrong; the message names the place, what was found and what is expected."""

    exit_code = ExitCode.WRONG_INPUT


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault in a config.

    key      dotted path; empty for the file as a whole
    problem  what was found and what is allowed
    origin   file (and line) or "command line"; empty if not known
    hint     what to do, for example the nearest valid name; may be empty
    """

    key: str
    problem: str
    origin: str
    hint: str = ""

    def __str__(self) -> str:
        text = ": ".join(filter(None, (self.origin, self.key, self.problem)))
        return f"{text} ({self.hint})" if self.hint else text


class ConfigError(UserError):
    """All faults of a config in one message."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        count = len(self.faults)
        head = "The experiment has a fault" if count == 1 else f"The experiment has {count} faults"
        super().__init__("\n".join([f"{head}:", *(f"  - {fault}" for fault in self.faults)]))


class DataError(UserError):
    """A data file is missing, empty, unreadable or not as the config describes it."""


class RunNotFound(UserError):
    """No run, or more than one, matches a name."""


class RunBusy(UserError):
    """The run is live somewhere; two writers in one run folder would destroy it."""


class UntrustedFolder(UserError):
    """Another user owns or may write the code to execute."""


class SchedulerError(StkError):
    """Slurm is the reason; the message shows its own words."""

    exit_code = ExitCode.SCHEDULER


class SlurmUnavailable(SchedulerError):
    """A Slurm command is missing, hangs, or finds no controller."""


class SlurmRefused(SchedulerError):
    """Slurm refused the request, or would refuse it because of a known limit."""


class RunFailed(StkError):
    """The run failed; failure.json in its folder has the details."""


class RendezvousError(RunFailed):
    """The ranks did not find each other in time."""


class DeviceError(RunFailed):
    """A GPU that this host should have cannot be used: the host is to blame, not the program."""


class CheckpointError(RunFailed):
    """No checkpoint could be loaded, or none could be written."""


class RunCancelled(RunFailed):
    """The run was ended before it was done: by a person, or by Slurm for good. It can be resumed."""


class TrainingDiverged(RunFailed):
    """The loss or the gradient is not finite; `rank` had the faulty micro-batch, None if unknown."""

    def __init__(self, message: str, rank: int | None = None) -> None:
        self.rank = rank
        super().__init__(message)


class RanksDiverged(RunFailed):
    """Ranks that must hold the same weights do not; `ranks` are the minority, empty without a majority."""

    def __init__(self, message: str, ranks: Sequence[int]) -> None:
        self.ranks = tuple(ranks)
        super().__init__(message)


class NoProgress(RunFailed):
    """Attempt after attempt ended before a step was done, so the run is not started again automatically."""
