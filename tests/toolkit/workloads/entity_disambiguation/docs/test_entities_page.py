"""The commands, examples and numbers of the page on entities are right."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from slurm.cli import main
from tests.docs.readme import ROOT
from tests.toolkit.workloads.entity_disambiguation.data.entities.files import PROFILES, record, write
from toolkit.workloads.entity_disambiguation.config import HEAD_ABOVE, TORSO_ABOVE

PAGE = (ROOT / "toolkit/workloads/entity_disambiguation/docs/entities.md").read_text(encoding="utf-8")
SENTENCE, PROFILE = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^ {4}(stk entities .*)$", PAGE, re.MULTILINE)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The input files of the commands."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "profiles.jsonl").write_text(PROFILE, encoding="utf-8")
    write(tmp_path / "more.jsonl", PROFILES[1:])
    lines = [record(sent_idx_unq=n, parent_qid=f"Q{n}", aliases=["vietnam"] * 2) for n in range(100)]
    write(tmp_path / "sentences.jsonl", lines)
    return tmp_path


def test_the_commands_of_the_page_work_in_their_order(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(COMMANDS) == 9
    for command in COMMANDS:
        words, _, target = command.partition(" > ")
        assert main(shlex.split(words)[1:]) == 0, command
        printed = capsys.readouterr().out
        if target:
            (files / target).write_text(printed, encoding="utf-8")
    assert "unif_TS" in printed


def test_the_sentence_and_the_profile_of_the_page_are_valid(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "in.jsonl").write_text(SENTENCE, encoding="utf-8")
    assert main(["entities", "convert", "in.jsonl", "out.jsonl"]) == 0
    assert json.loads((files / "out.jsonl").read_text())["char_spans"] == [[13, 24]]
    assert main(["entities", "import", "profiles.jsonl", "db"]) == 0
    capsys.readouterr()
    assert main(["entities", "show", "db", "Côte d'Ivoire", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["candidates"][0]["entity_id"] == "Q1008"


def test_the_page_has_the_default_thresholds() -> None:
    assert f"`head_above` times ({HEAD_ABOVE})" in PAGE
    assert f"`torso_above` times ({TORSO_ABOVE})" in PAGE


def test_the_page_has_the_numbers_of_wordnet_that_the_script_expects() -> None:
    script = (ROOT / "scripts" / "get_wordnet").read_text(encoding="utf-8")
    sentences, golds = map(int, re.findall(r"^EXPECTED = \((\d+), (\d+)\)", script, re.MULTILINE)[0])
    assert f"{sentences:,} sentences" in PAGE
    assert f"{golds:,} golds" in PAGE
