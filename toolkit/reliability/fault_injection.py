"""Fault injection: for the tests, `stk drill` and the soak test.

STK_FAULTS="kill at=forward step=5 rank=1 attempt=1; slow 0.5 at=save:write"

A fault is an action and a place; separate several with semicolons. Without step= it occurs once in a
process, except `slow`, which occurs in each step; with a range of steps it occurs once in each of them.

    kill      SIGKILL to this process          hang     wait forever
    term      SIGTERM to this process          slow S   wait S seconds
    stop      SIGSTOP to this process          exit N   exit with status N, without any clean-up
    raise     an exception                     enospc   an OSError: no space left on device
    nan       the next loss is not a number

    at=       a phase of training or a point of a save (POINTS); required
    step=     number of completed steps, or a range: 5, 5-9; without it at any step
    rank=     on this rank; without it on every rank
    attempt=  in this attempt of the run, counted from 1; without it in every attempt
"""

from __future__ import annotations

import errno
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from toolkit.errors import UserError
from toolkit.run.phases import TRAINING_PHASES

VARIABLE = "STK_FAULTS"


#: Points of a save, in this order; on rank 0, in the thread that writes.
SAVE_POINTS = tuple(
    f"save:{point}"
    for point in (
        "open",
        "write",
        "before_fsync",
        "after_fsync",
        "before_manifest",
        "after_manifest",
        "after_rename",
        "delete",
    )
)
POINTS = TRAINING_PHASES + SAVE_POINTS
_SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "stop": signal.SIGSTOP}
#: The meaning of the word after an action; None for an action without one.
_ACTIONS: dict[str, type[int] | type[float] | None] = {
    **dict.fromkeys(_SIGNALS),
    "hang": None,
    "raise": None,
    "exit": int,
    "enospc": None,
    "slow": float,
    "nan": None,
}
_WORDS = ("at", "step", "rank", "attempt")

#: Called with ("fault", facts) for events.jsonl.
Note = Callable[..., None]

#: toolkit.task.Loss, which is not imported here because that would import torch.
_Loss = TypeVar("_Loss")


class InjectedFault(Exception):
    """Raised by the action `raise`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault; None means any step, rank or attempt.

    steps    numbers of completed steps at which it occurs
    amount   the status of `exit`, the seconds of `slow`
    since    first number of completed steps at which it may still occur
    """

    action: str
    at: str
    steps: range | None = None
    rank: int | None = None
    attempt: int | None = None
    amount: float = 0.0
    since: int = 0

    def __str__(self) -> str:
        words = [self.action, f"at={self.at}"]
        if _ACTIONS[self.action]:
            words.insert(1, f"{self.amount:g}")
        if self.steps is not None:
            first, last = self.steps[0], self.steps[-1]
            words.append(f"step={first}" if first == last else f"step={first}-{last}")
        numbers = {"rank": self.rank, "attempt": self.attempt}
        return " ".join([*words, *(f"{name}={n}" for name, n in numbers.items() if n is not None)])

    def is_due(self, point: str, step: int) -> bool:
        """Whether it occurs at this point, after this number of completed steps."""
        return self.at == point and step >= self.since and (self.steps is None or step in self.steps)

    def after(self, step: int) -> Fault | None:
        """The fault that remains after it occurred at a step, or None."""
        left = self.action == "slow" if self.steps is None else step + 1 < self.steps.stop
        return replace(self, since=step + 1) if left else None


class Faults:
    """The faults that have yet to occur in this process."""

    def __init__(self, faults: Sequence[Fault], note: Note | None = None) -> None:
        self._waiting = list(faults)
        self._note = note
        self._nan_is_due = False

    @classmethod
    def from_environment(
        cls, rank: int, attempt: int, environ: Mapping[str, str] = os.environ, note: Note | None = None
    ) -> Faults | None:
        """The faults of STK_FAULTS for this rank in this attempt; None without any.

        note is called before each fault. Raises UserError naming a fault that cannot be parsed.
        """
        if not (spec := environ.get(VARIABLE)):
            return None
        own = [
            fault for fault in parse(spec) if fault.rank in (None, rank) and fault.attempt in (None, attempt)
        ]
        return cls(own, note) if own else None

    def at(self, point: str, step: int) -> None:
        """Apply the faults that are due at this point. May be called from several threads."""
        for fault in [each for each in self._waiting if each.is_due(point, step)]:
            self._waiting.remove(fault)
            if (rest := fault.after(step)) is not None:
                self._waiting.append(rest)
            if self._note is not None:
                self._note("fault", fault=str(fault), step=step)
            self._strike(fault)

    def inject_nan(self, loss: _Loss) -> _Loss:
        """Return the loss; its total is NaN if the fault `nan` is due."""
        if not self._nan_is_due:
            return loss
        self._nan_is_due = False
        known = cast(Any, loss)
        return cast(_Loss, replace(known, total=known.total * math.nan))

    def _strike(self, fault: Fault) -> None:
        if fault.action in _SIGNALS:
            os.kill(os.getpid(), _SIGNALS[fault.action])
        elif fault.action == "hang":
            threading.Event().wait()
        elif fault.action == "slow":
            time.sleep(fault.amount)
        elif fault.action == "exit":
            os._exit(int(fault.amount))
        elif fault.action == "enospc":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        elif fault.action == "nan":
            self._nan_is_due = True
        else:
            raise InjectedFault(f"{fault}, which {VARIABLE} asked for")


def parse(spec: str) -> list[Fault]:
    """Parse a text such as STK_FAULTS. Raises UserError naming the fault that cannot be parsed."""
    texts = [text.strip() for text in spec.split(";")]
    return [_fault(text) for text in texts if text]


def _fault(text: str) -> Fault:
    action, *words = text.split()
    if action not in _ACTIONS:
        raise _wrong(text, f"{action!r} is not an action; allowed are {', '.join(_ACTIONS)}")
    kind, amount = _ACTIONS[action], 0.0
    if kind is not None:
        amount = _amount(text, action, words.pop(0) if words else "", kind)
    fields: dict[str, str] = {}
    for word in words:
        name, found, value = word.partition("=")
        if not found or name not in _WORDS:
            allowed = ", ".join(f"{each}=" for each in _WORDS)
            raise _wrong(text, f"{word!r} is unknown; allowed are {allowed}")
        if name in fields:
            raise _wrong(text, "a word is given twice")
        fields[name] = value
    if "at" not in fields:
        raise _wrong(text, f"at= is missing; allowed are {', '.join(POINTS)}")
    at = fields.pop("at")
    if at not in POINTS:
        raise _wrong(text, f"at is {at!r}; allowed are {', '.join(POINTS)}")
    steps = _steps(text, fields.pop("step")) if "step" in fields else None
    numbers = {name: _number(text, name, value) for name, value in fields.items()}
    return Fault(action=action, at=at, amount=amount, steps=steps, **numbers)


def _steps(text: str, value: str) -> range:
    first, dash, last = value.partition("-")
    steps = range(_number(text, "step", first), _number(text, "step", last if dash else first) + 1)
    if not steps:
        raise _wrong(text, f"step is {value!r}, which runs backwards")
    return steps


def _amount(text: str, action: str, word: str, kind: type[int] | type[float]) -> float:
    try:
        amount = kind(word)
        if 0 <= amount < math.inf:
            return amount
    except ValueError:
        pass
    what = "a whole number" if kind is int else "seconds"
    raise _wrong(text, f"{action} takes {what}, such as `{action} 1`, and found {word!r}")


def _number(text: str, name: str, value: str) -> int:
    if not (value.isascii() and value.isdecimal()):
        raise _wrong(text, f"{name} is {value!r}, expected a whole number")
    return int(value)


def _wrong(text: str, problem: str) -> UserError:
    return UserError(f"{VARIABLE}: in the fault {text!r}, {problem}")
