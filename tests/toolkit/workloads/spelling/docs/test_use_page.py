"""The commands and options on the page on the use of spelling models agree with the code."""

from __future__ import annotations

import re
import shlex

import pytest

from slurm.cli import _parse
from tests.docs.readme import ROOT
from toolkit.workloads.spelling.inference.capabilities import CORRECTORS, DETECTORS, ON_BENCHMARKS

PAGE = (ROOT / "toolkit/workloads/spelling/docs/use.md").read_text(encoding="utf-8")
LINES = re.findall(r"^ {4}(.*stk .*)$", PAGE, re.MULTILINE)
COMMANDS = [part for line in LINES for part in line.split("|") if "stk" in part]


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def test_the_page_has_commands() -> None:
    assert len(COMMANDS) > 6


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_of_the_page_are_valid(command: str) -> None:
    words = re.split(r"[<>]", command)[0]
    _, *arguments = shlex.split(words)
    assert _parse(arguments).run


def test_options_of_the_page_are_those_of_the_commands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Or help breaks its lines at hyphens.
    monkeypatch.setenv("COLUMNS", "300")
    told = set(re.findall(r"`(--[a-z-]+)", section("Options")))
    for command in ("detect", "correct"):
        with pytest.raises(SystemExit):
            _parse([command, "--help"])
    assert told == set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"}


def test_tasks_are_named_for_the_commands_that_use_them() -> None:
    table = section("Commands")
    detect, correct = table.split("| `stk correct` |")
    assert set(re.findall(r"`(s[a-z]+_\w+|token\w+)`", detect)) == set(DETECTORS)
    assert set(re.findall(r"`(s[a-z]+_\w+|token\w+)`", correct)) == set(CORRECTORS)


def test_benchmarks_are_named_for_the_runs_that_predict_them() -> None:
    kinds, *rows = [line for line in section("Benchmarks").splitlines() if line.startswith("| ")]
    columns = re.findall(r"`(\w+)`", kinds)
    told = {}
    for row in rows[1:]:
        first, *cells = [cell.strip() for cell in row.strip("|").split("|")]
        can = {column for column, cell in zip(columns, cells, strict=True) if cell}
        told.update(dict.fromkeys(re.findall(r"`(\w+)`", first), can))
    assert told == {task: set(forms) for task, forms in ON_BENCHMARKS.items()}
