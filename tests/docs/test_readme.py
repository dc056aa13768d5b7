"""What the README and its first pages say can be done is done here, word for word."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from stk_toy.workload import WORKLOAD

from slurm.commands.parser import make_parser
from tests.docs import readme
from tests.docs.readme import ROOT
from toolkit.exit_codes import ExitCode
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir, find_runs

_CODE = re.compile(r"`([^`]+)`")


def test_the_readme_stays_short() -> None:
    assert len(readme.README.read_text(encoding="utf-8").splitlines()) <= 150


def test_every_command_is_run_by_a_test() -> None:
    unclaimed = [each for each in readme.commands() if not each.startswith(readme.CLAIMS)]
    assert unclaimed == [], "claim them in tests/docs/readme.py"


@pytest.mark.parametrize("claim", readme.CLAIMS)
def test_every_claim_matches_one_command(claim: str) -> None:
    assert readme.command(claim).startswith(claim)


# ---- a reader without a cluster


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody with a copy of the experiments, small data, and a shell without Slurm."""

    home: Path

    def run(self, command: str, env: Mapping[str, str] | None = None) -> str:
        """Run a command; return what it printed, or fail with all of it."""
        variables = {"PYTHONPATH": str(ROOT), "STK_DATA_DIR": str(self.home / "data"), "COLUMNS": "120"}
        environ = readme.without_slurm(self.home, Path(sys.executable).parent, **variables)
        return readme.typed(command, self.home, {**environ, **(env or {})})


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    home = tmp_path_factory.mktemp("reader")
    shutil.copytree(ROOT / "configs", home / "configs")
    (home / "data").mkdir()
    (home / "data" / "movie_reviews.tsv").write_text(readme.small_table(), encoding="utf-8")
    return Reader(home)


@pytest.fixture(scope="module")
def every_day(reader: Reader) -> dict[str, str]:
    """What the commands of every day print, run in their order."""
    return {claim: reader.run(readme.command(claim)) for claim in readme.EVERY_DAY}


@pytest.mark.slow
def test_the_plan_shows_experiment_and_script(every_day: dict[str, str]) -> None:
    plan = every_day["stk plan configs/quickstart.yaml"]
    assert "tasks_per_node: 2" in plan
    assert "#SBATCH --gres=gpu:2" in plan


@pytest.mark.slow
def test_the_run_ends_with_its_report(every_day: dict[str, str]) -> None:
    lines = every_day["stk run configs/quickstart.yaml"].splitlines()
    page = Path(lines[-1].removeprefix("report").strip())
    assert page.name == "report.html"
    assert page.is_file()


@pytest.mark.slow
def test_the_status_names_both_runs(every_day: dict[str, str]) -> None:
    assert {line.split("-")[0] for line in every_day["stk status"].splitlines()} >= {"first", "second"}


@pytest.mark.slow
def test_following_the_log_ends_with_the_run(every_day: dict[str, str], reader: Reader) -> None:
    assert "training: step 0" in every_day["stk logs"]
    (second,) = (run for run in find_runs(reader.home / "experiments") if run.run_id.startswith("second-"))
    assert second.result.is_file()


@pytest.mark.slow
def test_report_of_two_runs_names_both(every_day: dict[str, str], reader: Reader) -> None:
    page = (reader.home / "both.html").read_text(encoding="utf-8")
    assert "first-" in page
    assert "second-" in page


@pytest.mark.slow
def test_torchrun_starts_the_ranks(reader: Reader) -> None:
    reader.run(readme.command(readme.TORCHRUN), {"STK_EXPERIMENT_DIR": str(reader.home / "elastic")})
    (run,) = find_runs(reader.home / "elastic")
    assert read_json(run.result)["state"] == "finished"
    (ranks,) = (run.path / "ranks").glob("torchrun-*.jsonl")
    assert len(ranks.read_text().splitlines()) == 2


def test_activation_sets_virtual_env(reader: Reader) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], cwd=reader.home, check=True)
    found = reader.run(f'{readme.command(readme.ACTIVATE)} && echo "$VIRTUAL_ENV"')
    assert Path(found.strip()).samefile(reader.home / ".venv")


# ---- the quick start


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDir, str]:
    """The quick start on its real data, but for thirty steps."""
    return started_quickly(tmp_path_factory.mktemp("quickstart"), "train.epochs=null", "train.steps=30")


def started_quickly(home: Path, *overrides: str) -> tuple[RunDir, str]:
    """The run of the quick start, and what it printed; what is installed already is not installed again."""
    (home / "data").mkdir()
    fetched = ROOT / "data" / "movie_reviews.tsv"
    if fetched.is_file():
        shutil.copy(fetched, home / "data")
    environment = {
        "VIRTUAL_ENV": str(_environment_of_this_python(home)),
        "STK_DATA_DIR": str(home / "data"),
        "STK_EXPERIMENT_DIR": str(home / "experiments"),
    }
    command = " ".join([readme.command(readme.QUICKSTART), *overrides])
    printed = Reader(home).run(f"cd '{ROOT}' && {command}", environment)
    (run,) = find_runs(home / "experiments")
    return run, printed


def _environment_of_this_python(home: Path) -> Path:
    """A folder that scripts/setup takes for an environment in which all is installed."""
    parts = [(ROOT / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "constraints.txt")]
    (home / "environment").mkdir()
    (home / "environment" / ".slurm-toolkit.run").write_text(f"{''.join(parts).rstrip()} {ROOT}")
    return home / "environment"


def test_the_quickstart_installs_nothing_twice(quickstart: tuple[RunDir, str]) -> None:
    assert "Installing" not in quickstart[1]


@pytest.mark.slow
def test_the_quickstart_learns(tmp_path: Path) -> None:
    run, _ = started_quickly(tmp_path)
    result = read_json(run.result)
    assert result["state"] == "finished"
    assert result["metrics"]["test"]["accuracy"] >= 0.74


def test_the_quickstart_trains_in_two_processes(quickstart: tuple[RunDir, str]) -> None:
    (ranks,) = (quickstart[0].path / "ranks").glob("local-*[0-9a-f].jsonl")
    assert len(ranks.read_text().splitlines()) == 2


def test_the_quickstart_ends_with_scores_and_report(quickstart: tuple[RunDir, str]) -> None:
    run, printed = quickstart
    assert "macro F1" in printed
    assert str(run.report_html) in printed
    plots = {path.name for path in run.report.glob("*.png")}
    assert plots >= {"loss.png", "accuracy.png", "confusion_test.png"}


# ---- tables


def table_of(heading: str, page: Path = readme.COMMANDS) -> list[str]:
    """The first column of the first table below a heading of a page, its code spans."""
    text = page.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("|")]
    return [code for cell in cells[2:] for code in (_CODE.findall(cell) or [cell.strip()])]


@cache
def parsers() -> Mapping[str, argparse.ArgumentParser]:
    (choice,) = (
        action for action in make_parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    found: Mapping[str, argparse.ArgumentParser] = choice.choices
    return found


def test_table_of_commands_lists_the_commands_of_the_parser() -> None:
    ours = set(parsers()) - WORKLOAD.commands.keys()
    assert {code.split()[1] for code in table_of("All commands")} == ours


def test_listed_json_commands_are_those_with_the_option() -> None:
    (sentence,) = re.findall(r"([^.]*) take `--json`", readme.COMMANDS.read_text(encoding="utf-8"))
    takers = [name for name, parser in parsers().items() if "--json" in parser.format_help()]
    assert sorted(set(_CODE.findall(sentence)) & set(parsers())) == sorted(takers)


def test_options_in_the_table_of_commands_exist() -> None:
    for line in readme.COMMANDS.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `stk "):
            name, text = line.split()[2].strip("`"), parsers()[line.split()[2].strip("`")].format_help()
            for option in re.findall(r"--[a-z-]+", line):
                assert option in text, f"stk {name} has no {option}"


def test_table_of_exit_codes_lists_the_public_codes() -> None:
    # Codes from 75 to 79 are between the ranks, their launcher and the batch script.
    seen = {code for code in ExitCode if not ExitCode.YIELDED <= code <= ExitCode.RESTART_STEP}
    assert {int(code) for code in table_of("Exit codes")} == seen


def test_documented_environment_variables_are_those_in_the_code() -> None:
    sources = [*ROOT.glob("toolkit/**/*.py"), *ROOT.glob("slurm/**/*.py"), *ROOT.glob("configs/**/*.yaml")]
    sources += [path for path in ROOT.glob("scripts/*") if path.is_file()]
    found = {name for path in sources for name in re.findall(r"\bSTK_[A-Z_]+\b", path.read_text())}
    # The first four are set by a launcher or a script for its own processes; others stand for any name.
    of_commands = table_of("What each process finds", ROOT / "docs/your-code/own-command.md")
    told = {
        *table_of("Environment variables"),
        *table_of("Experiments", ROOT / "toolkit/workloads/spelling/docs/study.md"),
        *(name for name in of_commands if name.startswith("STK_")),
    }
    of_ours = {"STK_LAUNCHER", "STK_RENDEZVOUS", "STK_NONCE", "STK_CHECKPOINTS_TAKEN"}
    assert told == found - of_ours - {"STK_", "STK_NAME"}


def test_run_folder_page_lists_the_files_of_a_run(quickstart: tuple[RunDir, str]) -> None:
    """What a finished run holds is shown; the rest belongs to submissions, failures and commands."""
    text = readme.RUN_FOLDER.read_text(encoding="utf-8")
    shown = set(re.findall(r"^[├└]── (\S+?)/?(?: |$)", text, re.MULTILINE))
    there = {path.name for path in quickstart[0].path.iterdir() if not path.name.startswith(".")}
    assert there <= shown
    assert shown - there == {"job.yaml", "submissions.jsonl", "failure.json", "work"}
