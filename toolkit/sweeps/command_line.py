"""`key=a,b` and `key=loguniform(1e-5,1e-2)`: values and ranges on the command line. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolkit.config.composition.yaml_files import Unreadable, parse
from toolkit.errors import UserError
from toolkit.sweeps.spaces import RANGES, Choice, Space, Values, range_of
from toolkit.system.output.nearest import nearest

_OPENING, _CLOSING = "[{(", "]})"
_RANGE = re.compile(rf"\s*({'|'.join(RANGES)})\s*\((.*)\)\s*", re.DOTALL)


def read_space(override: str) -> Space | None:
    """The values or the range that `key=…` lists; None if it sets the key to one value.

    Raises UserError if one of several values is empty, or a range is invalid or misspelt.
    """
    key, _, text = override.partition("=")
    if match := _RANGE.fullmatch(text):
        try:
            return _read_range(match[1], match[2])
        except UserError as error:
            raise UserError(f"{key}: {error}, as in {key}={_EXAMPLES[match[1]]}") from None
    values = split_values(override)
    if (call := re.match(r"\s*(\w+)\s*\(", text)) and (meant := nearest(call[1], _EXAMPLES)):
        raise UserError(f"{key}: found {text}, expected a range as in {key}={_EXAMPLES[meant]}")
    return Values(tuple(values)) if len(values) > 1 else None


_EXAMPLES = {
    "uniform": "uniform(0, 0.5)",
    "loguniform": "loguniform(1e-5, 1e-2)",
    "randint": "randint(1, 4)",
    "choice": "choice(a, b)",
}


def _read_range(kind: str, text: str) -> Space:
    parts = [part.strip() for part in _cut(text)]
    if kind == "choice":
        if not all(parts):
            raise UserError("a value between commas is empty")
        return Choice(tuple(parts))
    try:
        return range_of(kind, [parse(part).value for part in parts])
    except Unreadable as error:
        raise UserError(f"{kind} needs two numbers: {error.problem}") from None


def split_values(override: str) -> list[str]:
    """The values of `key=a,b`: cut at commas outside of brackets and quotes.

    A text without a comma is one value, and so is a comma alone. A word without `=` has no value. Raises
    UserError if one of several values is empty.
    """
    key, equals, text = override.partition("=")
    if text.strip(" ") == ",":
        return [","]
    values = [part.strip() for part in _cut(text)] if equals else []
    if len(values) > 1 and not all(values):
        raise UserError(
            f"{override}: a value between commas is empty; write null for no value ({key}=null,a)"
        )
    return values


def _cut(text: str) -> Iterator[str]:
    depth, start, place, quote, closed = 0, 0, 0, "", -1
    while place < len(text):
        letter = text[place]
        if quote:
            if letter == "\\" and quote == '"':
                place += 1
            elif letter == quote:
                quote, closed = "", place
        # A doubled quotation mark means itself: here one quoted text ends and the next begins.
        elif letter in "\"'" and (closed == place - 1 or _may_begin(text[start:place], depth)):
            quote = letter
        elif letter in _OPENING:
            depth += 1
        elif letter in _CLOSING:
            depth = max(0, depth - 1)
        elif letter == "," and depth == 0:
            yield text[start:place]
            start = place + 1
        place += 1
    yield text[start:]


def _may_begin(before: str, depth: int) -> bool:
    """Whether a quotation mark after `before` begins a quoted text, and is not part of a plain one.

    As in YAML: at the beginning of a value, or of a part of a list or mapping.
    """
    before = before.rstrip()
    return not before or (depth > 0 and before[-1] in "[{,:(")
