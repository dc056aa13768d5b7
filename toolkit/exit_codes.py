"""All exit codes."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of `stk` (all below 75, and 130) and of the processes that it starts.

    DIFFERENT     what was compared differs: `stk replay`, `stk diff`; a check of `stk check` has failed;
                  Python's own code for an error
    YIELDED       a rank has saved and left before the end (sysexits' EX_TEMPFAIL)
    FENCED        another attempt of the run has replaced this one
    HUNG          the ranks of an attempt hang
    RESTART_STEP  the batch script starts its step again
    INTERRUPTED   stopped; the run has saved and can continue
    """

    DONE = 0
    DIFFERENT = 1
    WRONG_INPUT = 2
    SCHEDULER = 3
    FAILED = 4
    YIELDED = 75
    FENCED = 76
    HUNG = 77
    RESTART_STEP = 79
    INTERRUPTED = 130
