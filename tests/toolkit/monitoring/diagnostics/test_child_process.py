"""Questions go to a child process; one that hangs is given up, and what it had answered stays."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from toolkit.monitoring.diagnostics import child_process
from toolkit.monitoring.diagnostics.child_process import MARK, ask_here, read


def test_a_machine_tells_what_a_process_may_use() -> None:
    facts = ask_here(["machine"], 60)["machine"]
    assert facts["cpus"]["usable"] == len(os.sched_getaffinity(0))
    assert facts["memory"]["total_mb"] > 0
    assert facts["executable"] == sys.executable
    assert any(each["name"] == "lo" for each in facts["network"]["interfaces"])


def test_a_question_nobody_knows_does_not_spoil_the_next() -> None:
    answers = ask_here(["moon", "machine"], 60)
    assert answers["moon"] == {"why": "KeyError: 'moon'"}
    assert answers["machine"]["host"]


def test_what_was_answered_before_it_hung_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Says when it hangs, by the file; what is waited for is that and not a time.
    code = (
        f"print({MARK!r} + '[\"machine\", 1]', flush=True); open({str(tmp_path / 'hangs')!r}, 'w').close();"
        f"open({str(pipe)!r}).read()"
    )
    monkeypatch.setattr(child_process, "command", lambda questions: [sys.executable, "-c", code])
    answers: dict[str, object] = {}
    while not (tmp_path / "hangs").exists():
        answers = ask_here(["machine"], 2)
    assert answers == {"machine": 1, "why": "no answer in 2 s"}


def test_other_lines_are_passed_over() -> None:
    text = f'welcome\n{MARK}["gpus", {{"driver": null}}]\n{MARK}["torn'
    assert read(text) == {"gpus": {"driver": None}}


def test_a_process_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        child_process, "command", lambda questions: [sys.executable, "-c", "raise SystemExit(3)"]
    )
    assert ask_here(["machine"], 60) == {"why": "the process ended with code 3"}
