"""A closed pipe or a full disk loses output. It does not end the process."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import TextIO

import pytest

from toolkit.system.output.lasting_streams import lasting, outlive_streams

#: Prints more than a pipe holds, and leaves by itself.
_PROGRAM = """
import sys
from toolkit.system.output.lasting_streams import outlive_streams
outlive_streams()
for number in range(20_000):
    print("a line of some length", number, flush=number % 100 == 0)
print("the end", file=sys.stderr)
sys.exit(5)
"""


def test_a_closed_pipe_does_not_end_the_process() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "a line of some length 0\n"
    process.stdout.close()
    assert process.stderr.read() == "the end\n"
    process.stderr.close()
    assert process.wait() == 5


def test_a_full_disk_does_not_end_the_process() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", _PROGRAM], stdout=full, stderr=full, check=False)
    assert done.returncode == 5


def test_output_is_passed_through(monkeypatch: pytest.MonkeyPatch) -> None:
    stream: TextIO = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", stream)
    outlive_streams()
    print("shown")
    assert stream.getvalue() == "shown\n"  # type: ignore[attr-defined]
    assert not sys.stdout.isatty()
    assert lasting(sys.stdout) is sys.stdout
