"""Format numbers and external text the same way in terminal, page and plots."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from toolkit.run.records.headline import NOT_SCORES as NOT_SCORES
from toolkit.system.output.amounts import NOTHING as NOTHING
from toolkit.system.output.amounts import duration as duration
from toolkit.system.output.amounts import size_mb as size_mb
from toolkit.system.output.few import shortened
from toolkit.system.output.sanitize import clean as clean
from toolkit.workload import Goal, Metric

#: The depth of a shade is share ** SHADE_POWER, so that a few per cent can be seen.
SHADE_POWER = 0.6


def is_share(metric: Metric | None) -> bool:
    """Whether a metric is between 0 and 1 and shown as a percentage; an undeclared one is not."""
    return metric is not None and metric.unit == "share"


def is_of_part(metric: str) -> bool:
    """Whether a metric covers only a part of the data: name/part."""
    return "/" in metric


def metric_title(name: str, metric: Metric | None) -> str:
    """A metric's name for people, as declared; the name of a part of the data is unchanged."""
    base, _, of_part = name.partition("/")
    title = metric.title if metric is not None and metric.title else base.replace("_", " ")
    return title + (f", {of_part}" if of_part else "")


def score(metric: Metric | None, value: float | None) -> str:
    """A metric's value for people: shares in per cent, others with four decimal places."""
    if value is None:
        return NOTHING
    if not math.isfinite(value):
        return str(value)
    if is_share(metric):
        return f"{100 * value:.2f} %"
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1e5 or value == 0 else f"{value:.3e}"


def best_places(metric: Metric | None, values: Sequence[float | None], goal: Goal) -> list[int]:
    """Return the places of the best values; none if all look the same."""
    # NaN does not count: it is the only value that differs from itself.
    known = [value for value in values if value is not None and value == value]
    if len({score(metric, value) for value in known}) < 2:
        return []
    best = score(metric, min(known) if goal == "min" else max(known))
    return [place for place, value in enumerate(values) if score(metric, value) == best]


def share(part: float | None, whole: float) -> str:
    """A part of a whole in per cent; a dash if the part is unknown or the whole is 0."""
    return f"{100 * part / whole:.1f} %" if whole and part is not None else NOTHING


def count(value: float | None) -> str:
    """A whole number with separators."""
    return NOTHING if value is None else f"{value:,.0f}"


def decimal(value: float | None, digits: int = 2) -> str:
    """A number with a fixed number of decimal places."""
    return NOTHING if value is None else f"{value:.{digits}f}"


def clock(seconds: float) -> str:
    """A time span as hours, minutes and seconds, for narrow tables; in seconds below a minute."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def hours(value: float | None) -> str:
    """Hours of GPUs or CPUs: with as many digits as are meaningful."""
    if value is None:
        return NOTHING
    if value >= 10:
        return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"
    return f"{value:.2f}" if value >= 0.1 or value == 0 else f"{value:.2g}"


def moment(unix_s: float | None) -> str:
    """A point in time, in UTC because hosts and readers may be in different zones."""
    if unix_s is None:
        return NOTHING
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def capitalized(text: str) -> str:
    """Text with a capital first letter; the other letters stay."""
    return text[:1].upper() + text[1:]


def one_line(text: str, width: int = 40) -> str:
    """Text on one line of at most `width` characters; line ends and tabs become visible."""
    flat = text.replace("\n", "␊").replace("\t", "␉")
    return shortened(flat, width)


def short_names(keys: Iterable[str]) -> dict[str, str]:
    """Keys shortened to their last part if it is unique: `lr` for `optimizer.lr`."""
    last = {key: key.rpartition(".")[2] for key in keys}
    counts = Counter(last.values())
    return {key: name if counts[name] == 1 else key for key, name in last.items()}


def file_name(text: str) -> str:
    """Text as a file name: characters that may be special in a path become underscores."""
    return re.sub(r"[^\w.-]", "_", text)
