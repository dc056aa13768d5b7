"""The start time of a process is more exact than the boot time of its machine; ancestors of a process."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil
import pytest

from toolkit.system.processes import ancestors, process_start_time


def test_the_start_time_is_between_popen_and_the_first_output() -> None:
    asked = time.time()
    with subprocess.Popen([sys.executable, "-c", "print(); input()"], stdin=-1, stdout=-1) as process:
        process.stdout.readline()
        began = process_start_time(process.pid)
        spoke = time.time()
        process.communicate(b"\n")
    # Ticks of the kernel are a hundredth of a second, and clocks are read one after the other.
    assert asked - 0.02 <= began <= spoke


def test_ancestors_end_at_a_process_of_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where /proc is mounted with hidepid=1."""
    parent = psutil.Process.parent

    def hidden(process: psutil.Process) -> psutil.Process | None:
        if process.pid != os.getpid():
            raise psutil.AccessDenied(process.pid)
        return parent(process)

    assert ancestors()[0] == os.getppid()
    monkeypatch.setattr(psutil.Process, "parent", hidden)
    assert ancestors() == [os.getppid()]
