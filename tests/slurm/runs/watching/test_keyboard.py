"""Each key is read once and under its name, however many characters it sends."""

from __future__ import annotations

import os
import pty

import pytest

from slurm.runs.watching.keyboard import Keyboard
from tests.slurm.runs.watching.terminals import Terminal
from tests.support.patience import PATIENCE_S


@pytest.mark.parametrize(
    "sent,name",
    [
        ("j", "j"),
        ("J", "j"),
        ("\r", "enter"),
        ("\n", "enter"),
        ("\x1b", "escape"),
        ("\x1b[A", "up"),
        ("\x1bOA", "up"),
        ("\x1b[B", "down"),
        ("\x1bOB", "down"),
        ("\x1b[1;5B", "down"),
        # Right arrow, Delete, F3 as terminals and the console send it.
        ("\x1b[C", "unknown"),
        ("\x1b[3~", "unknown"),
        ("\x1bOR", "unknown"),
        ("\x1b[[C", "unknown"),
    ],
)
def test_a_key_is_read_whole(terminal: Terminal, sent: str, name: str) -> None:
    with Keyboard(terminal.keys) as keyboard:
        terminal.press(sent)
        assert keyboard.wait(PATIENCE_S) == name
        assert keyboard.wait(0) == ""


def test_keys_pressed_at_once_are_read_one_by_one(terminal: Terminal) -> None:
    with Keyboard(terminal.keys) as keyboard:
        terminal.press("k\x1b[Bq\n")
        assert [keyboard.wait(PATIENCE_S) for _ in range(4)] == ["k", "down", "q", "enter"]


def test_a_letter_after_esc_is_read_as_the_next_key(terminal: Terminal) -> None:
    keyboard = Keyboard(terminal.keys)
    with keyboard:
        terminal.press("\x1bq")
        assert keyboard.wait(PATIENCE_S) == "escape"
    with keyboard:
        assert keyboard.wait(0) == "q"
        assert keyboard.wait(0) == ""


def test_a_closed_terminal_raises_an_error() -> None:
    fingers, keys = pty.openpty()
    with Keyboard(keys) as keyboard:
        os.close(fingers)
        with pytest.raises(EOFError):
            keyboard.wait(60)
    os.close(keys)
