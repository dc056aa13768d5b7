"""Amounts in Slurm's notation: memory (16G), generic resources (gpu:a100:4(S:0-1)), time limits.

Slurm counts time limits in whole minutes, rounded up.
"""

from __future__ import annotations

import re

from toolkit.errors import UserError

_MEMORY = re.compile(r"(\d+)([KMGT]?)B?", re.IGNORECASE)
_KB = {"K": 1, "M": 1024, "": 1024, "G": 1024**2, "T": 1024**3}
_COUNT = re.compile(r"(\d+)([KMGTP]?)", re.IGNORECASE)
_FACTOR = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4, "P": 1024**5}
_UNLIMITED = frozenset({"UNLIMITED", "INFINITE", "-1"})
_FORMS = (
    re.compile(r"(?P<minutes>\d+)(?::(?P<seconds>\d+))?", re.ASCII),
    re.compile(r"(?P<hours>\d+):(?P<minutes>\d+):(?P<seconds>\d+)", re.ASCII),
    re.compile(r"(?P<days>\d+)-(?P<hours>\d+)(?::(?P<minutes>\d+)(?::(?P<seconds>\d+))?)?", re.ASCII),
)
_SECONDS = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}


def parse_mb(text: str) -> int:
    """Return megabytes, rounded up; plain numbers are megabytes. 0, also for an empty text, means no amount.

    Raises UserError for any other notation.
    """
    if not text:
        return 0
    match = _MEMORY.fullmatch(text)
    if match is None:
        raise UserError(f"{text!r} is not an amount of memory: expected a number with K, M, G or T")
    return -(-int(match[1]) * _KB[match[2].upper()] // 1024)


def format_mb(megabytes: int) -> str:
    """Return megabytes in the largest unit with a whole number, such as 16G."""
    for unit, size in (("T", 1024**2), ("G", 1024)):
        if megabytes % size == 0 and megabytes:
            return f"{megabytes // size}{unit}"
    return f"{megabytes}M"


def gres_of_request(text: str, name: str = "") -> dict[tuple[str, str], int]:
    """Return the count of each (name, type) in a `--gres` request; the type is empty if none is given.

    If a name is given, the text does not have it, as in `--gpus-per-node=a100:2`. Unknown notations are
    left out: Slurm checks them.
    """
    wanted: dict[tuple[str, str], int] = {}
    for item in text.split(","):
        item = re.sub(r"^gres[:/]", "", item.strip())
        words = [name, *item.split(":")] if name and item else item.split(":")
        count = _count(words[-1]) if len(words) > 1 else 1
        kinds = words[1:] if count is None else words[1:-1] if len(words) > 1 else []
        if words[0] in ("", "none") or len(kinds) > 1 or count == 0:
            continue
        key = (words[0].lower(), kinds[0].lower() if kinds else "")
        wanted[key] = wanted.get(key, 0) + (1 if count is None else count)
    return wanted


def gres_of_host(text: str) -> dict[tuple[str, str], int]:
    """Return the count of each (name, type) of a host, and of (name, "") over all types."""
    offered: dict[tuple[str, str], int] = {}
    for item in re.sub(r"\([^)]*\)", "", text.lower()).split(","):
        words = [word for word in item.strip().split(":") if word != "no_consume"]
        count = _count(words[-1])
        if len(words) > 1 and count is not None:
            name, kind = words[0], words[1] if len(words) > 2 else ""
            for key in {(name, kind), (name, "")}:
                offered[key] = offered.get(key, 0) + count
    return offered


def _count(text: str) -> int | None:
    match = _COUNT.fullmatch(text)
    return int(match[1]) * _FACTOR[match[2].upper()] if match else None


def parse_minutes(text: str) -> int | None:
    """Return the minutes of a time limit, rounded up; None for no limit.

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
    """Return a time limit as Slurm writes it, such as 1-06:30:00."""
    if minutes is None:
        return "UNLIMITED"
    days, rest = divmod(minutes, 24 * 60)
    clock = f"{rest // 60:02d}:{rest % 60:02d}:00"
    return f"{days}-{clock}" if days else clock
