"""Text from elsewhere, made safe to show: what a terminal or a page would act on becomes visible."""

from __future__ import annotations

from typing import Any

_BIDIRECTIONAL = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd")
_CONTROL = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
_UNSAFE = _CONTROL | _BIDIRECTIONAL | dict.fromkeys(range(0x7F, 0xA0), "\ufffd")


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
