"""The commands on the page on the evaluation of spelling work, and the page names all metrics."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from slurm.cli import main
from tests.docs.readme import ROOT
from tests.toolkit.workloads.spelling.benchmarks.folders import (
    CORRECT,
    CORRUPT,
    correction_benchmark,
    word_benchmark,
    write_lines,
)
from toolkit.workloads.spelling.benchmarks.baselines import baselines, english_words
from toolkit.workloads.spelling.benchmarks.kinds import KINDS
from toolkit.workloads.spelling.benchmarks.tables import figure_lines

PAGE = (ROOT / "toolkit/workloads/spelling/docs/evaluation.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^ {4}(stk evaluate .*)$", PAGE, re.MULTILINE)


@pytest.mark.slow
def test_commands_of_the_page_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for split in ("jfleg", "bea322"):
        correction_benchmark(tmp_path / "benchmarks", split)
    word_benchmark(tmp_path / "benchmarks")
    write_lines(tmp_path / "words.txt", "the\t5", "cat\t2")
    write_lines(tmp_path / "corrupt.txt", *CORRUPT)
    for name in ("correct.txt", "mine.txt"):
        write_lines(tmp_path / name, *CORRECT)
    assert len(COMMANDS) == 5
    for command in COMMANDS:
        assert main(shlex.split(command)[1:]) == 0, command
    assert (tmp_path / "scores.md").exists()
    assert (tmp_path / "scores.tex").exists()
    assert "Correction F1: 100.00" in capsys.readouterr().out


def test_the_page_shows_the_lines_of_a_single_prediction() -> None:
    figures = {"f1": 0.7487, "precision": 0.7602, "recall": 0.7375, "sequence_f1": 0.7662, "mned": 0.024}
    for line in figure_lines("sec", figures):
        assert f"    {line}\n" in PAGE


def test_all_kinds_metrics_and_baselines_are_named() -> None:
    for kind, metrics in KINDS.items():
        assert f"| `{kind}` |" in PAGE
        for metric in metrics:
            assert metric.title.lower() in PAGE.lower()
    for named in baselines({}).values():
        for name in named:
            assert f"| {name.removesuffix(' (baseline)')} |" in PAGE
    assert f"{len(english_words()):,} English words" in PAGE
