"""Time limits of an attempt: for the run's lock, between heartbeats, and for its exit."""

from __future__ import annotations

from toolkit.config.schema import Train
from toolkit.reliability.watchdog import period_s
from toolkit.run.phases import Phase

#: Seconds after which a failed rank exits, even if a library hangs.
LEAVE_WITHIN_S = 25.0
#: Seconds that drawing the report may take.
_REPORT_S = 600.0
#: Seconds that torch may take to compile a large model, once for training and once for evaluations.
_COMPILE_S = 1800.0


def lock_patience_s(train: Train) -> float:
    """Seconds to wait for the lock of an earlier attempt of the same job, which may be frozen.

    If possible less than rendezvous_timeout_s, in which the other ranks wait for rank 0.
    """
    patience_s = min(60.0, train.hang_timeout_s, 0.8 * train.rendezvous_timeout_s)
    return max(3 * period_s(train.hang_timeout_s), patience_s)


def hang_limit_s(train: Train, phase: Phase, save_s: float, *, compiles: bool = False) -> float:
    """Seconds without a heartbeat after which a rank that trains counts as hanging.

    save_s    seconds that a checkpoint takes
    compiles  whether torch may be compiling the model, during which there is no heartbeat
    """
    # Shorter than torch's own timeout, whose error does not name the rank at fault.
    limit_s = min(train.hang_timeout_s, 0.75 * train.collective_timeout_s)
    if compiles:
        # The ranks compile at the same time, so that none waits as long in a collective.
        limit_s = max(limit_s, _COMPILE_S)
    if phase is Phase.SAVE:
        return max(limit_s, 10 * save_s)
    return max(limit_s, _REPORT_S) if phase is Phase.REPORT else limit_s
