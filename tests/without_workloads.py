"""Run the core's tests in a copy of this tree without our workloads: python -m tests.without_workloads.

Arguments are handed to pytest; they may name files of the core's tests. The exit status is that of pytest.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.support.registering import ROOT, register

#: Folders of our workloads, and of their tests.
_WORKLOADS = ("toolkit/workloads/", "tests/toolkit/workloads/")
_CORE = ("tests/toolkit/", "tests/slurm/")


def is_of_core(path: Path) -> bool:
    """Whether a file or folder holds tests of the core, and no others."""
    name = f"{path.relative_to(ROOT).as_posix()}/" if path.is_relative_to(ROOT) else ""
    if name == "tests/toolkit/":
        return False
    return name.startswith(_CORE) and not name.startswith(_WORKLOADS)


def copy_tree(target: Path) -> None:
    """Copy what git knows and does not ignore, without workloads, and register none of them."""
    for name in _files():
        if not name.startswith(_WORKLOADS) and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name, follow_symlinks=False)
    # Found before the metadata of the installation, whose name it has.
    register(ROOT, target, is_wanted=lambda code: not code.startswith("toolkit.workloads."))


def _files() -> Iterator[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return filter(None, listed.split("\0"))


def main(arguments: list[str]) -> int:
    named = any(argument.startswith(_CORE) for argument in arguments)
    with tempfile.TemporaryDirectory(prefix="core-") as folder:
        copy_tree(Path(folder))
        command = [sys.executable, "-m", "pytest", *([] if named else _CORE), *arguments]
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(command, cwd=folder, env=environ, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
