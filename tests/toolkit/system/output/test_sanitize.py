"""Text from outside is safe for a terminal."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.system.output.sanitize import clean, log_line


@pytest.mark.parametrize(
    "raw, expected",
    [
        (b"plain\n", "plain"),
        (b"windows\r\n", "windows"),
        (b"\x1b[31mred\x1b[0m\n", "red"),
        (b" 10%\r 50%\r100%\n", "100%"),
        (b"after\x1b(B\x1b[m sgr0\n", "after sgr0"),
        (b"\x1b7saved\x1b8 \x1b=keys\x1b>\n", "saved keys"),
        (b"\x1b]0;title\x07text\n", "text"),
        (b"\x1b]8;;http://a.b\x1b\\link\x1b]8;;\x1b\\\n", "link"),
        (b"\x1bktitle\x1b\\text\n", "text"),
        (b"\x1bP1$r0m\x1b\\answer\n", "answer"),
        (b"\x1b]0;no end\n", "␛]0;no end"),
        (b"\x1b[31", "␛[31"),
        (b"bell\x07\n", "bell␇"),
        (b"caf\xc3\xa9 \xff\n", "café \ufffd"),
        (b"[bold]no markup[/]\n", "[bold]no markup[/]"),
    ],
)
def test_control_sequences_of_a_line_are_removed_or_escaped(raw: bytes, expected: str) -> None:
    assert log_line(raw) == expected


@given(st.binary())
def test_shown_lines_hold_no_control_characters(raw: bytes) -> None:
    text = log_line(raw)
    assert not any(unicodedata.category(sign) == "Cc" for sign in text.replace("\n", "").replace("\t", ""))
    assert not text.endswith("\n")


def test_cleaned_lines_share_their_keys() -> None:
    """Else the keys of a long metrics.jsonl take more memory than its values."""
    first, second = (clean(json.loads('{"samples_per_s": 1}')) for _ in range(2))
    assert next(iter(first)) is next(iter(second))
