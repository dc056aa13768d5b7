"""Check the amounts in `resources`; for an invalid notation, the message suggests a valid one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from slurm.client.quantities import format_mb, format_minutes, parse_mb, parse_minutes
from slurm.config.resources import Resources
from toolkit.config.schema import Experiment
from toolkit.errors import UserError
from toolkit.system.output.amounts import counted
from toolkit.workload import Violation, rule

#: Keys that exclude each other in sbatch.
MEMORY = ("mem", "mem_per_cpu", "mem_per_gpu")

_DURATION = re.compile(r"(\d{1,9}(?:\.\d+)?) ?(?:(d|h|m|s)[a-z]*)?", re.IGNORECASE | re.ASCII)
_MINUTES = {"d": 1440.0, "h": 60.0, "m": 1.0, "s": 1 / 60}
_BYTES = re.compile(r"(\d{1,9}(?:\.\d+)?) ?(?:([KMGT])i?B?)?", re.IGNORECASE | re.ASCII)
_MEGABYTES = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2}


@rule("resources.time")
def _time(experiment: Experiment) -> Iterator[Violation]:
    time = experiment.resources.time
    try:
        parse_minutes("1" if time is None else time)
    except UserError:
        problem = f"found {time!r}, expected minutes, one of M:S, H:M:S, D-H, D-H:M, D-H:M:S, or UNLIMITED"
        yield Violation(key=("resources", "time"), problem=problem, hint=_suggested_time(time or ""))


def _suggested_time(text: str) -> str:
    if (match := _DURATION.fullmatch(text)) is None or not float(match[1]):
        return ""
    if match[2] is None:
        # N minutes have as many seconds as N hours have minutes.
        number = max(1, round(float(match[1]) * 60))
        hours = format_minutes(number)
        return f"{number // 60}:{number % 60:02d} for {match[1]} minutes, {hours} for {match[1]} hours"
    minutes = max(1, round(float(match[1]) * _MINUTES[match[2].lower()]))
    return f"{format_minutes(minutes)} for {minutes} minutes"


@rule("resources.mem", "resources.mem_per_cpu", "resources.mem_per_gpu")
def _memory(experiment: Experiment) -> Iterator[Violation]:
    given = {name: text for name in MEMORY if (text := getattr(experiment.resources, name)) is not None}
    for name, text in given.items():
        try:
            parse_mb(text)
        except UserError:
            problem = f"found {text!r}, expected a whole number with K, M, G or T"
            yield Violation(key=("resources", name), problem=problem, hint=_suggested_memory(text))
    if len(given) > 1:
        first, second, *_ = given
        problem = (
            f"found {given[second]!r}, but resources.{first} is {given[first]!r}: sbatch takes one of them"
        )
        yield Violation(key=("resources", second), problem=problem)


def _suggested_memory(text: str) -> str:
    match = _BYTES.fullmatch(text)
    if text.startswith("-") or (match and not float(match[1])):
        return "0 for all memory of a host"
    if match is None:
        return ""
    units = match[2] or "GM"
    sizes = [format_mb(max(1, round(float(match[1]) * _MEGABYTES[unit.upper()]))) for unit in units]
    if match[2]:
        return sizes[0]
    return ", ".join(f"{size} for {match[1]}{unit}" for size, unit in zip(sizes, units, strict=True))


@rule("resources.gres")
def _gres(experiment: Experiment) -> Iterator[Violation]:
    for item in (experiment.resources.gres or "").split(","):
        name, _, count = item.strip().rpartition(":")
        key = ("resources", "gres")
        if item.strip().isdecimal():
            problem = f"found {item!r}, expected a name first"
            yield Violation(key=key, problem=problem, hint=f"gpu:{item.strip()}")
        elif re.match("gres[:/]", item.strip()):
            problem = f"found {item!r}, expected the name without gres before it"
            yield Violation(key=key, problem=problem, hint=item.strip()[5:])
        elif name and count == "0":
            yield Violation(key=key, problem=f"found {item!r}, which requests nothing", hint="leave it out")


def amounts(resources: Resources) -> Iterator[str]:
    """Yield one line for each set amount, with its meaning."""
    if resources.time is not None:
        minutes = parse_minutes(resources.time)
        yield f"time {resources.time}: " + ("no limit" if minutes is None else _duration(minutes))
    for name, of in zip(MEMORY, ("each host", "each CPU", "each GPU"), strict=True):
        if (text := getattr(resources, name)) is not None:
            amount = format_mb(parse_mb(text)) if parse_mb(text) else "all memory"
            yield f"{name} {text}: {amount} of {of}"


def _duration(minutes: int) -> str:
    hours, rest = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = ((days, "day"), (hours, "hour"), (rest, "minute"))
    return " ".join(counted(number, word) for number, word in parts if number)


RULES = (_time, _memory, _gres)
