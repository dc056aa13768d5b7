"""Questions go to a child process; one that hangs is given up, and what it had answered stays."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from toolkit.monitoring.diagnostics import child_process
from toolkit.monitoring.diagnostics.child_process import MARK, ask_here, read


def test_machine_facts_describe_what_a_process_may_use() -> None:
    facts = ask_here(["machine"], 60)["machine"]
    assert facts["cpus"]["usable"] == len(os.sched_getaffinity(0))
    assert facts["memory"]["total_mb"] > 0
    assert facts["executable"] == sys.executable
    assert any(each["name"] == "lo" for each in facts["network"]["interfaces"])


def test_an_unknown_question_does_not_affect_the_next_one() -> None:
    answers = ask_here(["moon", "machine"], 60)
    assert answers["moon"] == {"why": "KeyError: 'moon'"}
    assert answers["machine"]["host"]


def test_answers_before_a_hang_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # The file shows that the process hangs; the test waits for the file, not for a time.
    code = (
        f"print({MARK!r} + '[\"machine\", 1]', flush=True); open({str(tmp_path / 'hangs')!r}, 'w').close();"
        f"open({str(pipe)!r}).read()"
    )
    monkeypatch.setattr(child_process, "command", lambda questions: [sys.executable, "-c", code])
    answers: dict[str, object] = {}
    while not (tmp_path / "hangs").exists():
        answers = ask_here(["machine"], 2)
    assert answers == {"machine": 1, "why": "no answer in 2 s"}


def test_lines_without_the_mark_are_ignored() -> None:
    text = f'welcome\n{MARK}["gpus", {{"driver": null}}]\n{MARK}["torn'
    assert read(text) == {"gpus": {"driver": None}}


def test_a_failed_process_is_reported_with_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        child_process, "command", lambda questions: [sys.executable, "-c", "raise SystemExit(3)"]
    )
    assert ask_here(["machine"], 60) == {"why": "the process ended with code 3"}
