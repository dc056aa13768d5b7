"""A log gets plain lines, a terminal gets a bar, and other ranks show nothing."""

from __future__ import annotations

import io
import logging
import re

import pytest
from rich.console import Console

from toolkit.training.output import progress_display
from toolkit.training.output.progress_display import BarDisplay, Display, LogDisplay, choose_display

METRICS = {"train_loss": 0.51234, "train_samples_per_s": 1234.5}


def show(shown: Display) -> None:
    """All calls of a run to its display, in order."""
    shown.preparing("reading films.tsv", 10, 100)
    shown.start(200, 40)
    shown.step(41, 0.41, METRICS)
    shown.evaluation("validation", 1.0, {"loss": 0.4, "accuracy": 0.875})
    shown.message("[bold]saved[/] :smile: step 41")
    shown.stop()


def test_log_lines_are_plain_text(capfd: pytest.CaptureFixture[str]) -> None:
    show(LogDisplay())
    printed = capfd.readouterr().out
    assert printed.splitlines()[0] == "training: step 40 of 200"
    assert "validation" in printed
    assert "accuracy 0.8750" in printed
    assert "[bold]saved[/] :smile: step 41" in printed
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", printed)


def test_log_lines_of_steps_are_rate_limited(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = 1000.0
    monkeypatch.setattr("toolkit.training.output.progress_display.time.monotonic", lambda: clock)
    lines = LogDisplay()
    lines.start(200, 0)
    for step in range(1, 101):
        clock += 1.0
        lines.step(step, step / 100, METRICS)
    printed = capfd.readouterr().out.splitlines()
    assert printed[1:] == [
        f"step {step}/200  epoch {step / 100:.2f}  loss 0.5123  1234 samples/s" for step in (30, 60, 90)
    ]


def test_log_lines_report_long_preparations(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = 1000.0
    monkeypatch.setattr("toolkit.training.output.progress_display.time.monotonic", lambda: clock)
    lines = LogDisplay()
    for done in range(0, 4000, 100):
        clock += 1.0
        lines.preparing("encode entities", done, 4000)
    lines.preparing("read films.tsv", 5, None)
    clock += 30.0
    lines.preparing("read films.tsv", 10, None)
    assert capfd.readouterr().out.splitlines() == ["encode entities: 2,900 of 4,000", "read films.tsv: 10"]


def test_bar_shows_progress_and_does_not_interpret_markup() -> None:
    terminal = io.StringIO()
    console = Console(file=terminal, force_terminal=True, width=110, legacy_windows=False)
    show(BarDisplay(console))
    raw = terminal.getvalue()
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", raw)
    assert raw != text
    assert "training" in text
    assert "41/200" in text
    assert "loss 0.512" in text
    assert "[bold]saved[/] :smile: step 41" in text


def test_other_ranks_show_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    show(choose_display(is_main=False))
    assert capfd.readouterr() == ("", "")


def test_rank_0_has_lines_or_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    # A shell may set it for colours; the log of a job is no terminal.
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert type(choose_display(is_main=True)) is LogDisplay
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(progress_display, "Console", lambda: Console(file=terminal))
    monkeypatch.setenv("TERM", "xterm")
    live = choose_display(is_main=True)
    live.stop()
    assert type(live) is BarDisplay
    for name, value in (("TTY_COMPATIBLE", "0"), ("TERM", "dumb")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert type(choose_display(is_main=True)) is LogDisplay


def test_logged_display_writes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """With the times of `logging`, so that the logs of several ranks can be merged."""
    caplog.set_level(logging.INFO, logger="toolkit")
    show(choose_display(is_main=True, is_logged=True))
    assert caplog.messages[0] == "training: step 40 of 200"
    assert "accuracy 0.8750" in caplog.messages[1]
