"""Stack traces from the user's own code on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from toolkit.run.failure.own_frames import own_trace

OUTER = "/runs/tiny/code/toolkit/training/loop.py"
LIBRARY = "/opt/venv/lib/python3.11/site-packages/torch/tensor.py"


@pytest.mark.parametrize(
    "files, shown",
    [
        ([OUTER, "/runs/tiny/code/project/task.py", LIBRARY], ["task.py", "tensor.py"]),
        (["train.py", OUTER], ["train.py", "loop.py"]),
        ([OUTER, LIBRARY], ["loop.py", "tensor.py"]),
    ],
    ids=["own functions", "a script", "no own code"],
)
def test_stack_trace_begins_with_the_users_code(files: Sequence[str], shown: Sequence[str]) -> None:
    error = error_within(files)
    # This test's own frames, in which the error was caught, are the first.
    while error.__traceback__ is not None and error.__traceback__.tb_frame.f_code.co_filename == __file__:
        error = error.with_traceback(error.__traceback__.tb_next)
    lines = [line.split('"')[1] for line in own_trace(error).splitlines() if line.startswith("  File ")]
    assert [line.rpartition("/")[2] for line in lines] == shown


def error_within(files: Sequence[str]) -> BaseException:
    """An error that the last of these files raises, which the others have called."""
    call = None
    for name in reversed(files):
        body = "raise ValueError" if call is None else "call()"
        space = {"call": call}
        exec(compile(f"def work():\n    {body}\n", name, "exec"), space)
        call = space["work"]
    assert call is not None
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        call()
    return caught.value
