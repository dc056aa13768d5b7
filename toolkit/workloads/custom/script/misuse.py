"""Messages for wrong calls of a script: file and line, the problem, and a correct example."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import ParamSpec, TypeVar

from toolkit.errors import UserError

_EXAMPLES = {
    "log": "run.log(step=10, total=100, loss=0.5)",
    "checkpoint": 'with run.checkpoint(10) as folder: torch.save(state, folder / "state.pt")',
    "should_stop": "run.should_stop(every=10)",
    "latest_checkpoint": "folder = run.latest_checkpoint()",
    "leave": "run.leave()",
    "RunCallback": "RunCallback(keep=2)",
}
_OURS = Path(__file__).parents[3]
#: Files of Python: their frames are between `with run.checkpoint(…)` and our code, or in a thread of ours.
_BETWEEN = {each.__code__.co_filename for each in (contextmanager, Thread.run, ThreadPoolExecutor.submit)}

P = ParamSpec("P")
R = TypeVar("R")


def told_if_misused(method: Callable[P, R]) -> Callable[P, R]:
    """Decorate a method so that a call with wrong arguments raises the error of `misuse`."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except TypeError as error:
            # If the arguments do not fit, the traceback ends at this frame: the method did not start.
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            name, _, problem = str(error).partition("() ")
            raise misuse(f"run.{name.rpartition('.')[2]}(…)", problem) from None

    return call


def misuse(call: str, problem: str) -> UserError:
    """Return the error for a wrong call in a script, with file and line and a correct example.

    call   the call, such as `run.log(step=-1)` or `RunCallback(keep=0)`
    """
    name = call.partition("(")[0].removeprefix("run.")
    return UserError(f"{place_of_call()}{call}: {problem} (as in {_EXAMPLES[name]})")


def place_of_call() -> str:
    """Return file and line of the script, as in `train.py:12: `; empty if a library made the call."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_between(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or "site-packages" in frame.f_code.co_filename:
        return ""
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}: "


def _is_between(file: str) -> bool:
    return file in _BETWEEN or Path(file).is_relative_to(_OURS)
