"""The laws of the house, in a fresh interpreter: what may be imported where, and what may be read."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toolkit.tiny import write_experiment
from toolkit.config.kinds import TASKS

HOUSE = Path(__file__).parent.parent

#: Slow to import, or another world.
HEAVY = ("torch", "transformers", "numpy", "submitit", "matplotlib", "tensorboard", "pandas", "sklearn")

#: Above the torch line.
LIGHT = (
    "attempts.conclusion",
    "attempts.goodput",
    "attempts.held",
    "attempts.ledger",
    "attempts.recovery",
    "attempts.timeline",
    "calendar",
    "checkpoint.naming",
    "config",
    "create",
    "difference",
    "errors",
    "events",
    "failure.fence",
    "failure.heartbeat",
    "failure.records",
    "failure.watchdog",
    "files",
    "gpus",
    "launch",
    "machines.crew",
    "machines.layout",
    "machines.meeting",
    "receipts",
    "rundir",
    "stop",
    "world",
)


def imported(code: str, folder: Path = HOUSE) -> set[str]:
    """Which heavy packages a fresh interpreter holds after some code."""
    listing = f"import sys\nprint('\\nheld', *(name for name in {HEAVY!r} if name in sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-c", f"{code}\n{listing}"], capture_output=True, text=True, check=False, cwd=folder
    )
    assert answer.returncode == 0, answer.stderr
    return set(answer.stdout.splitlines()[-1].split()[1:])


def test_watch_sees_what_is_imported() -> None:
    """Or the tests here could not fail."""
    assert "numpy" in imported("import numpy")


def test_command_imports_nothing_heavy() -> None:
    assert imported("import slurm.cli") == set()


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_planning_imports_nothing_heavy(tmp_path: Path, options: list[str]) -> None:
    config = write_experiment(tmp_path)
    arguments = ["plan", str(config), *options]
    code = (
        f"from slurm.cli import main\ntry:\n    main({arguments!r})\n"
        "except SystemExit as end:\n    assert not end.code, end"
    )
    assert imported(code, tmp_path) == set()


def test_planning_entity_disambiguation_imports_nothing_heavy(tmp_path: Path) -> None:
    """Its slices and metrics are named without numpy."""
    arguments = ["plan", str(HOUSE / "configs" / "ned_wordnet.yaml"), "--json"]
    assert imported(f"from slurm.cli import main\nassert not main({arguments!r})", tmp_path) == set()


def test_modules_above_the_torch_line_import_nothing_heavy() -> None:
    lines = "\n".join(f"import toolkit.{name}" for name in LIGHT)
    assert imported(lines) == set()


@pytest.mark.parametrize("path", sorted((HOUSE / "slurm").rglob("*.py")), ids=lambda path: path.stem)
def test_module_of_the_submitter_names_no_heavy_package(path: Path) -> None:
    """Not even in a function, but for the one import inside the job, which has its reason beside it."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(r"^\s*(?:from|import)\s+(torch|transformers|numpy)\b", text, re.MULTILINE)
    assert found == []
    if path.stem != "job":
        assert not re.search(r"^\s*(?:from|import)\s+toolkit\.worker\b", text, re.MULTILINE)


def test_training_library_has_never_heard_of_the_scheduler() -> None:
    """No SLURM_ variable is read, nothing of the submitter imported."""
    for path in (HOUSE / "toolkit").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "SLURM_" not in text, path
        assert not re.search(r"^\s*(?:from|import)\s+(slurm|submitit)\b", text, re.MULTILINE), path


def test_task_never_imports_another_task() -> None:
    folder = HOUSE / "toolkit" / "tasks"
    tasks = {kind.code.partition(":")[0].rpartition(".")[2] for kind in TASKS.values()}
    # Nor does what tasks share.
    for name in {path.stem for path in folder.glob("[a-z]*.py")}:
        text = (folder / f"{name}.py").read_text(encoding="utf-8")
        others = set(re.findall(r"toolkit\.tasks\.(\w+)", text)) & tasks
        assert others <= {name}, name


def test_only_the_command_and_the_renderers_print() -> None:
    """Others return or raise, so that --json stays one document."""
    commands = {path.relative_to(HOUSE).as_posix() for path in (HOUSE / "slurm" / "commands").glob("*.py")}
    allowed = {"toolkit/display.py", "toolkit/worker.py", "slurm/cli.py", "slurm/after_step.py", *commands}
    printing = {
        path.relative_to(HOUSE).as_posix()
        for package in ("toolkit", "slurm")
        for path in (HOUSE / package).rglob("*.py")
        if re.search(r"^\s*print\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert printing <= allowed
