"""The other scripts source scripts/setup, also two of them at the same time."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.readme import ROOT

#: In place of pip: notes that it was called, and installs until the file `go` appears.
PIP = """\
#!/bin/sh
echo "$@" >>called
i=0; until [ -e go ] || [ $((i += 1)) -gt 5000 ]; do sleep 0.02; done
"""


@pytest.mark.skipif(shutil.which("flock") is None, reason="flock is not installed")
def test_second_script_waits_until_the_first_has_installed(tmp_path: Path) -> None:
    for name in ("scripts/setup", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    environment = tmp_path / ".venv/bin"
    environment.mkdir(parents=True)
    (environment / "activate").write_text(f"VIRTUAL_ENV={environment.parent}\n")
    (environment / "pip").write_text(PIP)
    (environment / "pip").chmod(0o755)

    def start() -> subprocess.Popen[str]:
        command = ["bash", "-euc", 'unset VIRTUAL_ENV; source scripts/setup; echo "done"']
        return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)

    with start() as first:
        assert first.stdout.readline().startswith("Installing")
        with start() as second:
            assert second.stdout.readline().startswith("Waiting")
            (tmp_path / "go").touch()
            assert (first.stdout.read(), second.stdout.read()) == ("done\n", "done\n")
    assert len((tmp_path / "called").read_text().splitlines()) == 2
    assert environment.is_dir()
