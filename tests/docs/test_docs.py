"""The pages beside the README: links lead somewhere, what is generated is current, nothing is invented."""

from __future__ import annotations

import builtins
import re
import subprocess
import sys
from pathlib import Path

import pytest

import stk
from benchmarks.figures.page import shown_by
from slurm.commands.parser import make_parser
from slurm.submission.batch.batch_script import JobPlan
from tests.docs.readme import ROOT, blocks
from toolkit.config import load
from toolkit.config.composition.yaml_files import parse
from toolkit.run.run_dir import RunDir

_PLACES = ("*.md", "docs/*.md", "docs/*/*.md", "toolkit/workloads/*/docs/*.md")
PAGES = [page for place in _PLACES for page in sorted(ROOT.glob(place))]
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
QUICKSTART = ROOT / "configs" / "quickstart.yaml"
#: Files of this repository as the pages name them, and placeholders among these.
_FILE = re.compile(r"`((?:toolkit|slurm|configs|scripts|tests|docs)/[\w./-]*)`")
_INVENTED = {"configs/mine.yaml"}
#: The rest of a paragraph that says what is raised, and in it names of several words, such as stk.UserError.
_RAISES = re.compile(r"\braises\b(.*?)(?:\n\n|^```)", re.IGNORECASE | re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"[\w.]*\b[A-Z][a-z]+[A-Z]\w*")


def anchors(page: Path) -> set[str]:
    """The anchors that a forge makes of a page's headings."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_have_existing_targets(page: Path) -> None:
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {link}"


def test_the_index_leads_to_every_page() -> None:
    index = ROOT / "docs" / "index.md"
    listed = {(index.parent / link).resolve() for link in _LINK.findall(index.read_text(encoding="utf-8"))}
    pages = [page for page in PAGES if page.parent != ROOT and page != index]
    assert [page.name for page in pages if page.resolve() not in listed] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent != ROOT], ids=lambda page: page.name)
def test_a_page_has_at_most_1500_words(page: Path) -> None:
    """Code on it does not count: it is looked up."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert len(prose.split()) <= 1500


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    named = set(_FILE.findall(page.read_text(encoding="utf-8"))) - _INVENTED
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_a_page_names_exist(page: Path) -> None:
    usage = make_parser().format_help()
    text = page.read_text(encoding="utf-8").partition("### Planned")[0]
    named = set(re.findall(r"(?:`|^ {4})stk ([a-z]+)", text, re.MULTILINE))
    assert [name for name in named if not re.search(rf"^ +{name} ", usage, re.MULTILINE)] == []


@pytest.mark.parametrize("script", ["make_reference", "make_python_api"])
def test_the_reference_is_current(script: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "scripts" / script, "--check"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("python-api*.md")), ids=lambda page: page.name)
def test_errors_that_a_public_docstring_names_can_be_caught(page: Path) -> None:
    paragraphs = _RAISES.findall(page.read_text(encoding="utf-8"))
    named = {name for text in paragraphs for name in _NAMED.findall(text)}
    assert named
    assert named - {f"stk.{name}" for name in stk._PLACES} - set(dir(builtins)) == set()


def test_every_measurement_is_shown_by_one_page() -> None:
    folder = ROOT / "docs" / "benchmarks"
    pages = [page for page in folder.glob("*.md") if page.stem != "overview"]
    shown = [name for page in pages for name in shown_by(page.read_text(encoding="utf-8"))]
    assert sorted(shown) == sorted(path.stem for path in folder.glob("measured/*.json"))


def test_benchmark_pages_show_the_measured_figures() -> None:
    script = ROOT / "docs" / "scripts" / "make_benchmarks"
    done = subprocess.run([sys.executable, script, "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_slurm_page_shows_the_script_of_the_plan(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "cluster" / "slurm.md").read_text(encoding="utf-8")
    (block,) = blocks("bash", page)
    given = ["resources.nodes=2", "resources.tasks_per_node=2", "resources.gres=gpu:2"]
    experiment = load(QUICKSTART, given)
    (run_id,) = re.findall(r"--job-name=(\S+)\.0\n", block)
    run = RunDir(tmp_path / run_id)
    script = str(JobPlan(experiment=experiment, run=run))
    assert [line for line in block.splitlines() if line not in script.splitlines()] == []


def test_experiment_page_shows_a_short_valid_experiment(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "experiment-file" / "overview.md").read_text(encoding="utf-8")
    block = blocks("yaml", page)[0]
    file = tmp_path / "experiment.yaml"
    file.write_text(block, encoding="utf-8")
    shown, shipped = (load(path, config_root=ROOT / "configs") for path in (file, QUICKSTART))
    assert shown.model == shipped.model
    assert shown.train.epochs == shipped.train.epochs
    assert len(block.splitlines()) <= 15


def test_every_option_that_the_script_has_is_explained() -> None:
    page = (ROOT / "docs" / "cluster" / "slurm.md").read_text(encoding="utf-8")
    experiment = load(QUICKSTART)
    script = str(JobPlan(experiment=experiment, run=RunDir(Path("/runs/r"))))
    given = set(re.findall(r"#SBATCH (--[a-z-]+)", script)) - {"--ntasks-per-node"}
    assert [option for option in sorted(given) if f"`{option}" not in page and option not in page] == []


def test_pictures_are_small() -> None:
    pictures = [*(ROOT / "docs" / "pictures").rglob("*.png")]
    assert {path.name for path in pictures} >= {"progress.png", "report.png"}
    assert all(path.stat().st_size < 300_000 for path in pictures)


def test_yaml_values_are_parsed_as_the_page_says() -> None:
    page = (ROOT / "docs" / "experiment-file" / "overview.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| you write \|.*\n\|.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    for row in table.splitlines():
        written, meaning, _ = (cell.strip() for cell in row.strip("|").split("|"))
        for text in re.findall(r"`([^`]+)`", written):
            is_text = meaning.startswith("the text")
            assert parse(text).value == (text if is_text else float(meaning)), row
