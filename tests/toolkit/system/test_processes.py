"""When a process began is known more exactly than the boot of its machine."""

from __future__ import annotations

import subprocess
import sys
import time

from toolkit.system.processes import process_start_time


def test_a_process_began_between_being_asked_for_and_its_first_word() -> None:
    asked = time.time()
    with subprocess.Popen([sys.executable, "-c", "print(); input()"], stdin=-1, stdout=-1) as process:
        assert process.stdout is not None
        process.stdout.readline()
        began = process_start_time(process.pid)
        spoke = time.time()
        process.communicate(b"\n")
    # Ticks of the kernel are a hundredth of a second, and clocks are read one after the other.
    assert asked - 0.02 <= began <= spoke


def test_this_process_is_meant_where_none_is_named() -> None:
    assert process_start_time() < time.time()
