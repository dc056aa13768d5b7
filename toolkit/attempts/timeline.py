"""The time of a run as spans on one line, up to the present."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolkit.attempts.goodput import Span, account


def spans(
    attempts: Sequence[Mapping[str, Any]], submitted: Sequence[float], now: float, *, is_live: bool = True
) -> tuple[Span, ...]:
    """The time of a run from its first submission on, oldest first; saves are parts of training.

    attempts   lines of the ledger; those that are damaged are left out
    submitted  times of submissions
    now        up to when: the present of a run that is live, else its last sign of life
    """
    starts = account(attempts, (), submitted, now)
    found = [span for start in starts for span in start.spans()]
    end = starts[-1].end if starts else min(submitted, default=now)
    if now > end and (is_live or not starts):
        found.append(Span(kind="waiting", begin=end, end=now))
    return tuple(found)
