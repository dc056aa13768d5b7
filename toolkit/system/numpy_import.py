"""Importing NumPy in a command that does no linear algebra."""

from __future__ import annotations

import os
import sys

#: Read by OpenBLAS, which NumPy's wheels contain, while it is loaded.
_THREADS = "OPENBLAS_NUM_THREADS"


def import_numpy() -> None:
    """Import NumPy without the threads of its OpenBLAS, unless it is imported or the user chose their number.

    OpenBLAS starts a thread for each core. Most of the time of the import goes there, and a login node may
    limit the threads of a user. The variable is removed again, because a job inherits the environment.
    """
    if "numpy" in sys.modules or _THREADS in os.environ:
        return
    os.environ[_THREADS] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[_THREADS]
