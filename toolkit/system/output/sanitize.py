"""Making external text and numbers safe: characters that act on terminals or pages become visible."""

from __future__ import annotations

import dataclasses
import re
import sys
from typing import Any

_BIDIRECTIONAL = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd")
_CONTROL = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
_UNSAFE = _CONTROL | _BIDIRECTIONAL | dict.fromkeys(range(0x7F, 0xA0), "\ufffd")

#: Escape sequences of a terminal (ECMA-48): those that begin with ESC [, such as colours; strings, such as a
#: title or a link; short ones, such as ESC ( B, with which `tput sgr0` begins.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[]PX^_k][^\x07\x1b\r\n]*(?:\x07|\x1b\\)|[ -/]*[0-OQ-WYZ\\`-jl-~])"
)

#: A larger number is no step, time or loss, and its square may overflow a float.
_MOST = 1e30


def number(value: object) -> float | None:
    """Return the value if it is a usable number, else None: its file may have been edited by anyone."""
    # Not isinstance: a bool does not count, and ten thousand runs need 300,000 calls.
    if type(value) is not float and type(value) is not int:
        return None
    return value if -_MOST < value < _MOST else None


def clean(value: Any) -> Any:
    """Make every string in a JSON-like value or a dataclass safe to print.

    Control characters become their pictures (an escape sequence in a label must not reach a
    terminal). Characters that change the text direction, and lone surrogates (which no file can
    hold), become replacement characters. Line ends and tabs stay.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8").translate(_UNSAFE)
    if isinstance(value, dict):
        # Interned, because thousands of lines have the same keys.
        return {sys.intern(clean(str(key))): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(clean, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.init]
        return dataclasses.replace(value, **{name: clean(getattr(value, name)) for name in names})
    return value


def without_escapes(text: str) -> str:
    """Return output of a program without colours and other escape sequences."""
    return _ESCAPES.sub("", text)


def log_line(raw: bytes) -> str:
    """Return a line of a log for a terminal, without its end; of a line with carriage returns, the last part.

    Escape sequences are removed, and other control characters are replaced by visible symbols.
    """
    text = without_escapes(raw.decode("utf-8", "replace")).rstrip("\r\n")
    return str(clean(text.rpartition("\r")[2]))
