"""Whether a key allows a value."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import Any

from toolkit.config.fields import Limits
from toolkit.system.output.nearest import guess

#: Largest whole number for a key without a limit: Slurm and torch use 32 bits.
_MOST = 2**31 - 1


def bounded(value: Any, limits: Limits) -> Limits:
    """Return the limits of a key, with a maximum for whole numbers if it has none."""
    if isinstance(value, int) and limits.maximum is None and value > _MOST:
        return replace(limits, maximum=_MOST)
    return limits


def is_within(value: Any, limits: Limits) -> bool:
    """Whether a value of the right type is allowed."""
    low, above, high, pattern = limits.minimum, limits.above, limits.maximum, limits.pattern
    return (
        (not limits.choices or value in limits.choices)
        and (value != "" or not (limits.path or limits.hub))
        and (pattern is None or not isinstance(value, str) or re.fullmatch(pattern, value) is not None)
        and (low is None or isinstance(value, str) or value >= low)
        and (above is None or value > above)
        and (high is None or value <= high)
    )


def located(value: Any, limits: Limits) -> Any:
    """Make a file name absolute, because the run has another working directory; ~ is a home folder."""
    if isinstance(value, tuple):
        return tuple(located(each, limits) for each in value)
    if not isinstance(value, str) or not (limits.path or limits.hub):
        return value
    # A YAML file and a quoted override do not pass through a shell.
    name = os.path.expanduser(value)
    folder = os.path.dirname(name)
    # A name of which neither the folder nor its parent exists means a model on a hub.
    if limits.path or os.path.exists(name) or (folder != "" and os.path.isdir(folder)):
        return os.path.abspath(name)
    return name


def cure(hint: Any, value: Any, limits: Limits) -> str:
    """Say what to do about a value that is not allowed; empty if nothing is known."""
    if isinstance(value, str) and value in limits.instead:
        return limits.instead[value]
    if limits.choices:
        return guess(value, limits.choices)
    if limits.pattern and isinstance(value, str):
        first, _, last = value.partition(":")
        swapped = f"{last}:{first}"
        return f"did you mean {swapped}?" if first and last and re.fullmatch(limits.pattern, swapped) else ""
    if hint is str and isinstance(value, bool | float):
        return "put it in quotes if text is meant"
    if hint is bool and isinstance(value, str) and value.lower() in ("yes", "no", "on", "off"):
        return "write true or false"
    return ""
