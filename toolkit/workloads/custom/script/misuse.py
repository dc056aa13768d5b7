"""Messages for a script that calls the run in a wrong way: the place, and the right way."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import ParamSpec, TypeVar

from toolkit.errors import UserError

_EXAMPLES = {
    "log": "run.log(step=10, total=100, loss=0.5)",
    "checkpoint": 'with run.checkpoint(10) as folder: torch.save(state, folder / "state.pt")',
    "should_stop": "run.should_stop(every=10)",
    "latest_checkpoint": "folder = run.latest_checkpoint()",
    "leave": "run.leave()",
}
_OURS = Path(__file__).parents[3]
#: File of Python's own frames between a block of the script and the code that gives it its folder.
_BETWEEN = contextmanager.__code__.co_filename

P = ParamSpec("P")
R = TypeVar("R")


def told_if_misused(method: Callable[P, R]) -> Callable[P, R]:
    """Make `misuse` of a call whose arguments do not fit the method."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except TypeError as error:
            # Of this frame alone if Python could not even begin the method.
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            name, _, problem = str(error).partition("() ")
            raise misuse(f"run.{name.rpartition('.')[2]}(…)", problem) from None

    return call


def misuse(call: str, problem: str) -> UserError:
    """The error for a call of a script's, with the script's line and the shortest right example.

    call   such as `run.log(step=-1)`
    """
    name = call.partition("(")[0].removeprefix("run.")
    return UserError(f"{_place()}{call}: {problem} (as in {_EXAMPLES[name]})")


def _place() -> str:
    """File and line of the script; empty where a library calls."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and _is_between(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or "site-packages" in frame.f_code.co_filename:
        return ""
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}: "


def _is_between(file: str) -> bool:
    return file == _BETWEEN or Path(file).is_relative_to(_OURS)
