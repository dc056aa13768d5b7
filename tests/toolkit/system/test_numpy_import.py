"""Importing NumPy without the threads of its OpenBLAS, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

_NAME = "OPENBLAS_NUM_THREADS"
_PROGRAM = """
import json, os, sys
from toolkit.system.numpy_import import import_numpy, leave_out_threads

if sys.argv[1] == "command":
    leave_out_threads()
import_numpy()
print(json.dumps(["numpy" in sys.modules, len(os.listdir("/proc/self/task")), os.environ.get("NAME")]))
""".replace("NAME", _NAME)


def _seen(program: str = "command", **variables: str) -> list[object]:
    """Return what such a process saw: whether NumPy was imported, its number of threads, the variable."""
    kept = {name: value for name, value in os.environ.items() if name != _NAME}
    shown = subprocess.check_output([sys.executable, "-P", "-c", _PROGRAM, program], env=kept | variables)
    found: list[object] = json.loads(shown)
    return found


def test_it_starts_no_thread_and_leaves_no_variable_for_a_job() -> None:
    assert _seen() == [True, 1, None]


def test_a_number_of_threads_that_the_user_chose_is_kept() -> None:
    # NumPy is imported where it is needed, with this number.
    assert _seen(**{_NAME: "3"}) == [False, 1, "3"]


def test_a_program_of_the_user_imports_numpy_itself_with_its_threads() -> None:
    assert _seen("a notebook") == [False, 1, None]
