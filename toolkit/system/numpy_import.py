"""Importing NumPy without threads, in a command of `stk` that does no linear algebra."""

from __future__ import annotations

import os

#: Read by OpenBLAS, which NumPy's wheels contain, while it is loaded.
_THREADS = "OPENBLAS_NUM_THREADS"
#: False in a program that uses `stk` from Python, and in one that trains.
_leaves_out_threads = False


def leave_out_threads() -> None:
    """Let `import_numpy` leave out the threads in this process, for as long as it lives."""
    global _leaves_out_threads
    _leaves_out_threads = True


def import_numpy() -> None:
    """Import NumPy without the threads of its OpenBLAS, if `leave_out_threads` was called; else do nothing.

    OpenBLAS starts a thread for each core. That takes half the time of the import, and a login node may
    limit the threads of a user. A number that the user chose is kept. The variable is removed again,
    because a job inherits the environment.
    """
    if not _leaves_out_threads or _THREADS in os.environ:
        return
    os.environ[_THREADS] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        os.environ.pop(_THREADS, None)
