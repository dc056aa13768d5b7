"""Processes that a script forks: a signal that asks it to leave must not end them before it has saved.

Slurm and `stk` send it to all processes. A handler is not enough: torch gives each worker of a DataLoader
its own handler for SIGTERM, which ends the worker, and then the script fails. So they block the signal.
"""

from __future__ import annotations

import multiprocessing.util
import os
import signal
import sys
import threading
from collections.abc import Iterable, Mapping
from typing import Any


class Protection:
    """Lets processes that `multiprocessing` forks from now on obey only their parent's signals.

    The same holds for the library `multiprocess`.
    A signal from another process is dropped. One from the parent, such as that of `Pool.terminate`, does
    what it would do in a script without `stk`.

    before  the signals, with their handlers before those of `stk`
    """

    def __init__(self, before: Mapping[int, Any]) -> None:
        self._before = before
        # Not os.register_at_fork: a program that a child of Popen executes would keep the blocked signals.
        multiprocessing.util.register_after_fork(self, Protection._protect)
        self._is_in_multiprocess = False
        os.register_at_fork(before=self._register_in_multiprocess)

    def _register_in_multiprocess(self) -> None:
        """Protect also what the library multiprocess forks, as `datasets.map` does, once it is imported."""
        util = sys.modules.get("multiprocess.util")
        if util is not None and not self._is_in_multiprocess:
            self._is_in_multiprocess = True
            util.register_after_fork(self, Protection._protect)

    def _protect(self) -> None:
        """Called in the new process, before its own code."""
        if not hasattr(signal, "sigwaitinfo"):
            return
        signal.pthread_sigmask(signal.SIG_BLOCK, self._before)
        for number, handler in self._before.items():
            # None: it was not set from Python.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        threading.Thread(target=_obey, args=(os.getppid(), tuple(self._before)), daemon=True).start()


def _obey(parent: int, numbers: Iterable[int]) -> None:
    """Wait for signals; let those of the parent take effect, and all signals once it has ended."""
    while True:
        found = signal.sigwaitinfo(numbers)
        if found.si_pid != parent and os.getppid() == parent:
            continue
        if found.si_signo == signal.SIGTERM and _is_loader_worker():
            # As torch's handler does for its parent's signal. Another status is an error in the parent.
            os._exit(0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
        signal.raise_signal(found.si_signo)
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)


def _is_loader_worker() -> bool:
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None
