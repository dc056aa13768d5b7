"""Time limits in Slurm's notation, counted as Slurm counts them: in whole minutes, rounded up."""

from __future__ import annotations

import re

from toolkit.errors import UserError

_UNLIMITED = frozenset({"UNLIMITED", "INFINITE", "-1"})
_FORMS = (
    re.compile(r"(?P<minutes>\d+)(?::(?P<seconds>\d+))?", re.ASCII),
    re.compile(r"(?P<hours>\d+):(?P<minutes>\d+):(?P<seconds>\d+)", re.ASCII),
    re.compile(r"(?P<days>\d+)-(?P<hours>\d+)(?::(?P<minutes>\d+)(?::(?P<seconds>\d+))?)?", re.ASCII),
)
_SECONDS = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}


def parse_minutes(text: str) -> int | None:
    """The minutes of a time limit, rounded up; None for no limit.

    Zero means no limit, as in sbatch. Raises UserError for any other notation.
    """
    if text.upper() in _UNLIMITED:
        return None
    for form in _FORMS:
        if match := form.fullmatch(text):
            seconds = sum(int(value or 0) * _SECONDS[unit] for unit, value in match.groupdict().items())
            return -(-seconds // 60) or None
    raise UserError(
        f"{text!r} is not a time limit: expected minutes, minutes:seconds, hours:minutes:seconds, "
        "days-hours, days-hours:minutes, days-hours:minutes:seconds or UNLIMITED"
    )


def format_minutes(minutes: int | None) -> str:
    """A time limit as Slurm writes it, such as 1-06:30:00."""
    if minutes is None:
        return "UNLIMITED"
    days, rest = divmod(minutes, 24 * 60)
    clock = f"{rest // 60:02d}:{rest % 60:02d}:00"
    return f"{days}-{clock}" if days else clock
