"""Messages for violations, with the key and the file and line where it was written."""

from __future__ import annotations

from collections.abc import Iterable

from toolkit.config.origins import Origins, dotted
from toolkit.errors import DataError, Fault
from toolkit.workload import Violation


def raise_violations(
    found: Iterable[Violation], origins: Origins | None, warnings: Iterable[Violation] = ()
) -> None:
    """Raise DataError with a line for each violation, if there are any, and then one for each warning."""
    if lines := violation_lines(found, origins):
        message = ["The experiment cannot run as it is:", *(f"  - {line}" for line in lines)]
        if others := violation_lines(warnings, origins):
            message += ["Warnings:", *(f"  - {line}" for line in others)]
        raise DataError("\n".join(message))


def violation_lines(found: Iterable[Violation], origins: Origins | None) -> list[str]:
    """Return a line for each violation: file, line and key, what was found, what to do."""

    def origin(each: Violation) -> str:
        return "" if origins is None else str(origins.of(each.key))

    return [
        str(Fault(key=dotted(each.key), problem=each.problem, origin=origin(each), hint=each.hint))
        for each in found
    ]
