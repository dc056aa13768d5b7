"""Workloads are looked up among the installed packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_an_installation_older_than_the_code_is_reported(tmp_path: Path) -> None:
    metadata = tmp_path / "slurm_toolkit-0.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: slurm-toolkit\nVersion: 0.0\n")
    environ = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-P", "-m", "slurm", "plan", str(ROOT / "configs" / "quickstart.yaml")]
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install" in done.stderr
    assert "Traceback" not in done.stderr


def with_package(folder: Path, code: str) -> dict[str, str]:
    """The environment with a package whose module `odd` has this code."""
    (folder / "odd.py").write_text(code)
    about = folder / "odd-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[slurm_toolkit.workloads]\nodd = odd:WORKLOAD\n")
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}


@pytest.mark.parametrize(
    "code, why",
    [
        ("WORKLOAD = {}", "a dict, expected a Workload"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        (
            "import toolkit.workload as t; WORKLOAD = t.Workload(name='odd', tasks=(), packages=('odd'))",
            "Workload.packages is a str, expected a tuple",
        ),
        ("import toolkit.workload as t; t.Metric(name='odd', goal='lower')", "expected the goal"),
        (
            "import toolkit.workload as t; WORKLOAD = t.Workload(name='odd', tasks=('x',), packages=())",
            "expected a tuple of TaskSpec",
        ),
        (
            "import toolkit.workload as t\n"
            "WORKLOAD = t.Workload(name='odd', tasks=(), packages=(), commands=['x'])",
            "expected a dict",
        ),
    ],
)
def test_package_that_registers_no_workload_is_named_and_harms_no_command(
    code: str, why: str, tmp_path: Path
) -> None:
    environ = with_package(tmp_path, code)
    reason = "from toolkit.registry import unloaded; print(unloaded()['odd'])"
    for arguments in (["-c", reason], ["-m", "slurm", "--help"]):
        done = subprocess.run([sys.executable, "-P", *arguments], env=environ, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "-m" in arguments or why in done.stdout


@pytest.mark.parametrize("command", ["import sys; sys.exit(3)", "odd = {}"])
def test_command_of_a_package_that_is_none_is_named_in_the_help(command: str, tmp_path: Path) -> None:
    workload = "name='odd', tasks=(), packages=(), commands={'odd': 'odd_command:odd'}"
    environ = with_package(tmp_path, f"import toolkit.workload as t; WORKLOAD = t.Workload({workload})")
    (tmp_path / "odd_command.py").write_text(command)
    words = [sys.executable, "-P", "-m", "slurm", "--help"]
    shown = subprocess.run(words, env=environ, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    assert "odd_command:odd cannot be imported" in " ".join(shown.stdout.split())
