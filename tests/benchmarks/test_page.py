"""The part of the page that is made of measurements."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks.figures.page import PICTURES, part_of, read, replaced, shown_by
from benchmarks.figures.tables import Row, Table
from tests.docs.readme import ROOT
from toolkit.errors import UserError

PICTURE, DRAWN = next(iter(PICTURES.items()))
STORY = "# Benchmarks\n\nBefore.\n"


@pytest.fixture
def figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a measurement of made-up figures, as the command writes it."""
    folder = tmp_path / "figures"
    folder.mkdir()
    monkeypatch.setattr(command, "measure", lambda *_: [made_up()])
    assert command.main(["loop", "--json", str(folder / "loop.json")]) == 0
    return folder


def made_up() -> Table:
    table = Table(title=DRAWN, goal="g", unit="ms", better="less", baseline="by hand", notes=("A note.",))
    rounds = {"by hand": [{"ms": 7.0}, {"ms": 8.0}], "stk run": [{"ms": 7.5}, {"ms": 8.25}]}
    table.rows.append(Row(work="DocNN", candidate="peer", missing="not installed: peer"))
    return table.filled({("DocNN", candidate): found for candidate, found in rounds.items()}, "ms")


def test_table_comes_back_from_json_as_it_was() -> None:
    table = made_up()
    assert Table.of_json(json.loads(json.dumps(table.as_json()))) == table


def test_page_holds_goals_machine_and_tables_between_its_marks(figures: Path) -> None:
    first, second = part_of("goals"), part_of("loop").replace("\n", "\nold\n", 1)
    page = replaced(f"{STORY}{first}Between.\n{second}After.\n", read(figures))
    assert page.startswith(STORY)
    assert page.endswith("After.\n")
    assert "Between." in page
    assert "old" not in page
    assert "| +0.38 ms over hand-written | yes, part not measured |" in page
    assert ", 2 rounds, load" in page
    assert "\n".join(made_up().brief()) in page
    assert shown_by(page) == ["goals", "loop"]
    assert f"](pictures/{PICTURE})" in page
    assert replaced(page, read(figures)) == page


def test_page_leaves_out_tables_without_a_goal(figures: Path) -> None:
    change(figures / "loop.json", tables=[{**made_up().as_json(), "goal": "none, it explains"}])
    page = replaced(f"{STORY}{part_of('loop')}", read(figures))
    assert "by hand" not in page


def test_page_without_measurements_says_that_nothing_was_measured(tmp_path: Path) -> None:
    page = replaced(f"{STORY}{part_of('goals')}", read(tmp_path))
    assert page.count("| not measured |") == 17


def test_page_without_marks_is_refused_with_the_lines_to_add(figures: Path) -> None:
    with pytest.raises(UserError, match="put these lines into it"):
        replaced(STORY, read(figures))


def test_figures_of_a_quick_measurement_are_refused(figures: Path) -> None:
    change(figures / "loop.json", quick=True)
    with pytest.raises(UserError, match="figures mean nothing"):
        read(figures)


def test_table_in_two_files_is_refused(figures: Path) -> None:
    (figures / "again.json").write_text((figures / "loop.json").read_text())
    with pytest.raises(UserError, match="two files have the table"):
        read(figures)


@pytest.mark.slow
def test_script_writes_page_and_pictures_and_detects_outdated_ones(figures: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{STORY}{part_of('goals', 'loop')}")
    assert make("", figures, page).returncode == 0
    assert (tmp_path / PICTURE).read_bytes().startswith(b"\x89PNG")
    assert make("--check", figures, page).returncode == 0
    change(figures / "loop.json", date="2001-01-01")
    done = make("--check", figures, page)
    assert (done.returncode, "run docs/scripts/make_benchmarks" in done.stderr) == (1, True)


def make(option: str, figures: Path, page: Path) -> subprocess.CompletedProcess[str]:
    folders = ["--figures", figures, "--page", page, "--pictures", page.parent]
    script = [sys.executable, ROOT / "docs" / "scripts" / "make_benchmarks", *filter(None, [option])]
    return subprocess.run([*script, *folders], capture_output=True, text=True)


def change(file: Path, **values: object) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))
