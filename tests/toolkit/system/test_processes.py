"""The start time of a process is more exact than the boot time of its machine."""

from __future__ import annotations

import subprocess
import sys
import time

from toolkit.system.processes import process_start_time


def test_the_start_time_is_between_popen_and_the_first_output() -> None:
    asked = time.time()
    with subprocess.Popen([sys.executable, "-c", "print(); input()"], stdin=-1, stdout=-1) as process:
        process.stdout.readline()
        began = process_start_time(process.pid)
        spoke = time.time()
        process.communicate(b"\n")
    # Ticks of the kernel are a hundredth of a second, and clocks are read one after the other.
    assert asked - 0.02 <= began <= spoke
