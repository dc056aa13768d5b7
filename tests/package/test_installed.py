"""The wheel, installed into an environment of its own, does what the README's first screen says."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

from slurm.drill.local import INTERRUPTIONS
from slurm.drill.task import STRIDE
from tests.docs import readme
from tests.docs.readme import ROOT
from toolkit.files import read_json
from toolkit.run.run_dir import find_runs
from toolkit.workloads.custom.commands.init import starters

pytestmark = pytest.mark.slow

_IN_THE_WHEEL = (
    "toolkit",
    "slurm",
    "configs",
    "examples",
    "stk.py",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)
_INIT, _RUN, _ = readme.FIRST


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who has installed the wheel, and has no copy of the repository."""

    environment: Path

    def run(self, command: str, folder: Path) -> str:
        """Run a command in a folder; return what it printed, or fail with all of it."""
        environ = readme.without_slurm(folder, self.environment / "bin")
        environ.pop("PYTHONPATH", None)
        return readme.typed(command, folder, environ)


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> User:
    home = tmp_path_factory.mktemp("installed")
    source, wheels, environment = home / "source", home / "wheels", home / "environment"
    source.mkdir()
    for name in _IN_THE_WHEEL:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    offline = ["--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "wheel", *offline, "--wheel-dir", wheels, source], check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    (wheel,) = wheels.glob("*.whl")
    # Ignoring what is installed: beside this pip lies an editable install, perhaps of the same version.
    subprocess.run(
        [*pip, "--python", python, "install", "--no-deps", "--ignore-installed", wheel], check=True
    )
    # What the wheel needs comes from the environment of these tests. A .pth file brings no editable install.
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return User(environment)


def test_the_first_commands_train_from_an_empty_folder(user: User, tmp_path: Path) -> None:
    user.run(f"{readme.command(_INIT)} && {readme.command(_RUN)}", tmp_path)
    (run,) = find_runs(tmp_path / "digits" / "experiments")
    assert read_json(run.result)["metrics"]["test"]["accuracy"] > 0.9
    assert user.run('python -c "import toolkit; print(toolkit.__file__)"', tmp_path).startswith(
        str(user.environment)
    )


def test_experiment_files_are_in_the_wheel(user: User, tmp_path: Path) -> None:
    listed = user.run("stk init --list", tmp_path).split()
    assert listed == list(starters())
    user.run("stk init texts --from quickstart", tmp_path)
    assert (tmp_path / "texts" / "model" / "docnn.yaml").is_file()


def test_user_folders_named_like_our_packages_do_no_harm(user: User, tmp_path: Path) -> None:
    user.run(readme.command(_INIT), tmp_path)
    project = tmp_path / "digits"
    for name in ("toolkit", "slurm", "configs", "tests"):
        (project / name).mkdir()
        (project / name / "__init__.py").write_text("raise ImportError('this is the user\\'s own')\n")
    short = "train.epochs=null train.steps=5"
    user.run(f"stk plan digits.yaml && stk run digits.yaml {short} && stk status", project)
    (run,) = find_runs(project / "experiments")
    assert read_json(run.result)["step"] == 5
    user.run(f"stk submit digits.yaml name=behind --cluster local {short} && stk logs -f behind", project)
    (behind,) = (each for each in find_runs(project / "experiments") if each.run_id.startswith("behind-"))
    assert read_json(behind.result)["step"] == 5


def test_drill_of_the_installed_wheel_passes(user: User, tmp_path: Path) -> None:
    told = json.loads(user.run("stk drill --cluster local --json", tmp_path))
    assert told["verdict"] == "passed", told
    rows = {row["what"]: row for row in told["rows"]}
    assert list(rows) == [interruption.what for interruption in INTERRUPTIONS]
    assert told["not_tried"] == ["what only a cluster can do: time limits, requeueing, lost hosts"]
    for row in rows.values():
        assert row["same_bytes"] is True
        assert row["left_s"] is not None
        assert 0 < row["back_s"] <= row["away_s"]
    assert [row["processes"] for row in told["rows"][-2:]] == ["2 → 1", "1 → 2"]
    # How often a signal comes depends on the machine: equal signals that wait for a process become one.
    assert set(rows["warned and preempted at once"]["signals"]) == {"CONT", "TERM", "USR2"}
    assert rows["one rank killed (-9)"]["signals"] == ["KILL"]
    assert set(rows["preempted once more"]["signals"]) == {"CONT", "TERM"}
    for interruption in INTERRUPTIONS:
        lost = rows[interruption.what]["lost_steps"]
        assert lost == 0 if interruption.is_graceful else 2 <= lost <= STRIDE + 2
