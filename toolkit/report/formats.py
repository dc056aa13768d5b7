"""How numbers and foreign text look, the same in terminal, page and plots."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any

#: Shown where there is no value.
NOTHING = "–"

#: Columns of metrics.jsonl that say when and how fast, not how good.
NOT_SCORES = frozenset({"time", "step", "epoch", "split", "lr", "grad_norm", "samples_per_s", "tokens_per_s"})

_SHARES = frozenset(
    {"accuracy", "popularity", "precision", "recall", "f1", "real_word_rate", "non_word_rate"}
)
#: Before the names of shares: what they are shares of, or means over.
_OF = ("text_", "macro_", "weighted_", "word_", "token_", "sequence_", "correction_", "repair_")
_BIDIRECTIONAL = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd")
_CONTROL = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
_UNSAFE = _CONTROL | _BIDIRECTIONAL | dict.fromkeys(range(0x7F, 0xA0), "\ufffd")


#: A share's power of this is its depth of shade, so that a few per cent of mistakes can be seen.
SHADE_POWER = 0.6


def is_share(metric: str) -> bool:
    """Whether a metric lies between 0 and 1 and is read as a percentage."""
    metric = metric.partition("/")[0]
    for prefix in _OF:
        metric = metric.removeprefix(prefix)
    return metric in _SHARES


def is_of_slice(metric: str) -> bool:
    """Whether a metric is that of one slice, such as accuracy/unif_TL."""
    return "/" in metric


def metric_title(metric: str) -> str:
    """A metric's name for people; that of a slice stands as it is."""
    metric, _, of_slice = metric.partition("/")
    words = metric.replace("_", " ")
    words = {"f1": "F1", "mcc": "Matthews correlation", "roc auc": "ROC AUC", "mned": "MNED"}.get(
        words, words
    )
    return words.replace(" f1", " F1") + (f", {of_slice}" if of_slice else "")


def score(metric: str, value: float | None) -> str:
    """A metric's value for people: shares in per cent, others with four digits behind the point."""
    if value is None:
        return NOTHING
    if not math.isfinite(value):
        return str(value)
    if is_share(metric):
        return f"{100 * value:.2f} %"
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1e5 or value == 0 else f"{value:.3e}"


def share(part: float | None, whole: float) -> str:
    """A part of a whole in per cent; a dash where the part is unknown or the whole is empty."""
    return f"{100 * part / whole:.1f} %" if whole and part is not None else NOTHING


def count(value: float | None) -> str:
    """A whole number with separators."""
    return NOTHING if value is None else f"{value:,.0f}"


def decimal(value: float | None, digits: int = 2) -> str:
    """A number with a fixed count of digits behind the point."""
    return NOTHING if value is None else f"{value:.{digits}f}"


def duration(seconds: float | None) -> str:
    """A time span in its two largest units."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours < 48 else f"{hours // 24} d {hours % 24:02d} h"


def moment(unix_s: float | None) -> str:
    """A point in time, in UTC because hosts and readers may stand in different zones."""
    if unix_s is None:
        return NOTHING
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def clean(value: Any) -> Any:
    """Make every string in a JSON-like value safe to print.

    Control characters become their pictures (an escape sequence in a label must not reach a
    terminal), characters that turn the direction of writing and lone surrogates (which no file can
    hold) become replacement characters. Line ends and tabs stay.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8").translate(_UNSAFE)
    if isinstance(value, dict):
        return {clean(str(key)): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


def one_line(text: str, width: int = 40) -> str:
    """Text on one line of at most so many characters; line ends and tabs become visible."""
    flat = text.replace("\n", "␊").replace("\t", "␉")
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def file_name(text: str) -> str:
    """Text as the name of a file: what may mean something in a path becomes an underscore."""
    return re.sub(r"[^\w.-]", "_", text)
