"""The commands of the README and of its first pages, and which test runs each of them.

A command is claimed by its beginning. Every command must be claimed exactly once: `test_readme.py`
fails otherwise, so a new one cannot go untested.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support.patience import PATIENCE_S
from tests.support.registering import own_environment

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
COMMANDS = ROOT / "docs" / "commands.md"
RUN_FOLDER = ROOT / "docs" / "runs" / "run-folder.md"
STARTING = ROOT / "docs" / "runs" / "starting.md"

QUICKSTART = "./scripts/quickstart"
ACTIVATE = "source .venv/bin/activate"

#: One after the other, in an empty folder: see test_installed.py and test_readme_on_slurm.py.
FIRST = ("stk init digits", "stk run digits.yaml", "stk submit digits.yaml")

#: One after the other, as a reader would, with small data: tests/docs/test_readme.py.
EVERY_DAY = (
    "stk plan configs/quickstart.yaml",
    "stk run configs/quickstart.yaml",
    "stk submit configs/quickstart.yaml name=second",
    "stk status",
    "stk logs",
    "stk report",
)
TORCHRUN = "torchrun "

#: On the real cluster: tests/cluster/test_readme_on_slurm.py. The first three are jobs of their own.
JOBS = (
    "stk submit configs/quickstart.yaml name=even",
    "stk submit configs/quickstart.yaml name=uneven",
    "STK_CONFIG=configs/quickstart.yaml sbatch",
)
IN_THE_FOREGROUND = ("srun -n 4", "salloc")
OWN_CLUSTER = ("./scripts/cluster up", "./scripts/cluster shell", "./scripts/cluster down")

#: Commands that no test runs, and why.
EXEMPT = {"./scripts/test": "it is what runs the tests"}

CLAIMS = (
    *(QUICKSTART, ACTIVATE, *FIRST, *EVERY_DAY, TORCHRUN),
    *(*JOBS, *IN_THE_FOREGROUND, *OWN_CLUSTER, *EXEMPT),
)


def commands() -> list[str]:
    """Every command of the shell blocks, once; continued lines are one command."""
    pages = (page.read_text(encoding="utf-8") for page in (README, COMMANDS, STARTING))
    shown = [block for page in pages for block in blocks("(?:sh|bash|shell|console)", page)]
    lines = "\n".join(shown).replace("\\\n", " ").splitlines()
    return [*dict.fromkeys(line.strip() for line in lines if line.strip() and not line.startswith("#"))]


def command(claim: str) -> str:
    """The one command that begins like this. Raises LookupError."""
    found = [each for each in commands() if each.startswith(claim)]
    if len(found) != 1:
        raise LookupError(f"{len(found)} commands of the README begin with {claim!r}, expected one")
    return found[0]


def blocks(language: str, page: str) -> list[str]:
    """The code of a page in a language, a regular expression."""
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def without_slurm(home: Path, programs: Path, **variables: str) -> dict[str, str]:
    """The environment of somebody with these programs, but no controller, also where this machine has one."""
    own = own_environment()
    path = f"{programs}{os.pathsep}{own['PATH']}"
    return {**own, "PATH": path, "SLURM_CONF": str(home / "no-slurm.conf"), **variables}


def typed(commands: str, folder: Path, environ: Mapping[str, str]) -> str:
    """What commands print that somebody types in a folder; fails with all of it unless each succeeds."""
    done = subprocess.run(
        ["bash", "-e", "-c", commands],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def small_table() -> str:
    """A data set that is learnt in a second, with the columns of the film reviews."""
    words = {"positive": ("moving", "warm", "sharp"), "negative": ("dull", "clumsy", "bland")}
    rows = [
        f"the film {number % 7} is {words[label][number % 3]}\t{label}"
        for number in range(60)
        for label in words
    ]
    return "\n".join(["text\tlabel", *rows, ""])
