"""Stop requests from Slurm: a handler only records the signal."""

from __future__ import annotations

import signal
import time
from types import FrameType

from slurm.client.stop_reason import WARNING
from slurm.job.when_to_stop import JobWatch
from toolkit.reliability.stop import StopFlag, stop_signals

#: A person sends the second one, with scancel. NCCL up to 2.12 takes its handler, and survives it too.
_WARNINGS = (signal.Signals[WARNING], signal.SIGUSR1)


class JobStop(StopFlag):
    """A stop request by Slurm: a signal, such as the warning before the time limit, or the end of the job.

    srun passes Ctrl-C on to its tasks: the first one asks for a stop, the second one ends the process.

    signals     names and times of the signals that this process received
    watch       the watch of the job, set on rank 0 of a job
    is_watched  whether rank 0 of this job has a watch, which then judges the warning (every task of a
                step gets it); otherwise the warning is a reason to stop
    """

    def __init__(self, *, is_watched: bool = False) -> None:
        super().__init__()
        self.watch: JobWatch | None = None
        self.signals: list[tuple[str, float]] = []
        self._is_watched = is_watched
        self._warned: float | None = None

    def install(self, *signals: signal.Signals) -> JobStop:
        super().install(*(signals or (*stop_signals(), signal.SIGUSR1)))
        # Slurm sends SIGCONT before each signal; submitit would log every one.
        signal.signal(signal.SIGCONT, self._note)
        return self

    def reason_to_stop(self, lead_s: float = 0.0, *, is_measured: bool = True) -> str | None:
        if self._reason is None and self.watch is not None:
            if is_measured:
                self.watch.check_budgets(lead_s)
            self._reason = self.watch.reason_to_stop(lead_s, self._warned)
        return self._reason

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signals.append((signal.Signals(number).name, time.time()))

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._note(number, frame)
        if self._is_watched and number in _WARNINGS:
            # The latest warning counts: `stk requeue` may send it again.
            self._warned = self.signals[-1][1]
        else:
            super()._handle(number, frame)
