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
    ],
)
def test_package_that_registers_no_workload_is_named_and_harms_no_command(
    code: str, why: str, tmp_path: Path
) -> None:
    (tmp_path / "odd.py").write_text(code)
    about = tmp_path / "odd-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[slurm_toolkit.workloads]\nodd = odd:WORKLOAD\n")
    environ = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    reason = "from toolkit.registry import unloaded; print(unloaded()['odd'])"
    for arguments in (["-c", reason], ["-m", "slurm", "--help"]):
        done = subprocess.run([sys.executable, "-P", *arguments], env=environ, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "-m" in arguments or why in done.stdout
