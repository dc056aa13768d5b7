"""Workloads are looked up among the installed packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
