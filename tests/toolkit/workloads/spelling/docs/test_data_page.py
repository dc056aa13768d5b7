"""The commands, noises and numbers on the page on spelling data agree with scripts and code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from slurm.cli import main
from tests.docs.readme import ROOT
from tests.toolkit.nlp.sentences import TEXTS
from tests.toolkit.workloads.spelling.noisy import tree
from toolkit.config import check
from toolkit.workloads.spelling.benchmarks.make import RATE, RATE_OF_SEQUENCES, tasks_of
from toolkit.workloads.spelling.config.noise import NOISES
from toolkit.workloads.spelling.data.noise.misspellings import Misspellings
from toolkit.workloads.spelling.data.texts.features import FEATURES, STOP_WORDS
from toolkit.workloads.spelling.tokenizers.tokenizer import load_tokenizer

PAGE = (ROOT / "toolkit/workloads/spelling/docs/data.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^ {4}(stk spelling .*)$", PAGE, re.MULTILINE)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The input files of the commands on the page."""
    monkeypatch.chdir(tmp_path)
    for name in ("train.txt", "test.txt"):
        (tmp_path / name).write_text("\n".join(TEXTS * 2) + "\n", encoding="utf-8")
    (tmp_path / "other.txt").write_text("their\t5\n", encoding="utf-8")
    wrongs = [f"thei{letter * count}r" for letter in "abcdefg" for count in range(1, 9)]
    (tmp_path / "codespell.txt").write_text("".join(f"{wrong}->their\n" for wrong in wrongs))
    return tmp_path


def test_commands_of_the_page_work_in_their_order(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(COMMANDS) == 7
    for command in COMMANDS:
        assert main(shlex.split(command)[1:]) == 0, command
        assert "wrote " in capsys.readouterr().out
    sizes = {kind: len(load_tokenizer(files / f"{kind}.json")) for kind in ("characters", "bytes")}
    assert sizes == {"characters": 99, "bytes": 260}
    assert all(f"| `{kind}` | {size}" in PAGE for kind, size in sizes.items())


def test_the_noises_of_the_page_are_valid() -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    described = [each for block in blocks for each in yaml.safe_load_all(block)]
    assert len(described) == 4
    for each in described:
        assert check(tree(each.get("noise", each))).data.noise
    for name in NOISES:
        assert f"`{name}`" in PAGE


def test_the_numbers_of_texts_are_those_of_the_script() -> None:
    script = (ROOT / "scripts" / "get_spelling").read_text(encoding="utf-8")
    (expected,) = re.findall(
        r'^EXPECTED = {"train": (\d+), "dev": (\d+), "test": (\d+)}', script, re.MULTILINE
    )
    assert "{:,}, {:,} and {:,}, with".format(*map(int, expected)) in PAGE


def test_tasks_and_constants_are_those_of_the_code() -> None:
    tasks = tasks_of(0.0, Misspellings({}))
    assert all(f"| `{task}` |" in PAGE for task in tasks)
    assert (RATE, RATE_OF_SEQUENCES) == (0.2, 0.05)
    assert (len(FEATURES), STOP_WORDS) == (13, 100)
    assert "hundred most frequent" in PAGE


def test_the_scripts_of_the_page_exist() -> None:
    scripts = re.findall(r"^ {4}\./(scripts/\w+)$", PAGE, re.MULTILINE)
    assert scripts
    for script in scripts:
        assert (ROOT / script).stat().st_mode & 0o100
