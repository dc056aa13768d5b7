"""Times, sizes and counts for people. A kB, MB and GB is 2**10, 2**20 and 2**30 bytes, as in Slurm."""

from __future__ import annotations

import math

#: Shown where there is no value.
NOTHING = "–"

_UNITS = ("B", "kB", "MB", "GB", "TB")


def duration(seconds: float | None) -> str:
    """A time span with about three digits: 42.3 s, 4 min 05 s, 29 min, 3 h 05 min, 2 d 04 h."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 10:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours < 1:
        return f"{minutes} min"
    return f"{hours} h {minutes:02d} min" if hours < 24 else f"{hours // 24} d {hours % 24:02d} h"


def size(number: float) -> str:
    """Bytes with up to three digits, such as 803 MB or 1.6 GB."""
    unit = 0
    while number >= 1023.5 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.1f} {_UNITS[unit]}" if unit and number < 99.95 else f"{number:.0f} {_UNITS[unit]}"


def size_mb(megabytes: float | None) -> str:
    """An amount that is known in megabytes."""
    return NOTHING if megabytes is None else size(megabytes * 2**20)


def counted(number: int, what: str) -> str:
    """Return a number with its noun: 1 row, 2 rows."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
