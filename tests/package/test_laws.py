"""The rules of imports, in a fresh interpreter: what may be imported where, and what may be read."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from stk_toy.texts.example import write_example

from tests.toolkit.workloads.custom.own_digits import write_digits
from tests.toolkit.workloads.text_classification.tiny_texts import write_docnn
from toolkit.config.fields import keys_of
from toolkit.registry import task_kinds
from toolkit.workload import LOSS, TaskSpec

ROOT = Path(__file__).parents[2]

#: Slow to import, or another world.
HEAVY = ("torch", "transformers", "numpy", "submitit", "matplotlib", "tensorboard", "pandas", "sklearn")

#: Above the torch line.
LIGHT = (
    "run.attempts.crash_record",
    "run.attempts.goodput",
    "run.attempts.resource_hours",
    "run.attempts.attempt",
    "reliability.restart_policy",
    "training.schedule.due_steps",
    "checkpoint.paths",
    "config",
    "run.create_run",
    "analysis.diff",
    "training.warm_start.find",
    "errors",
    "run.events",
    "run.fence",
    "reliability.heartbeat",
    "run.failure.records",
    "reliability.watchdog",
    "files",
    "system.idle_gpus",
    "system.world",
    "launch.launcher",
    "launch.machines.coordination",
    "launch.machines.layout",
    "launch.machines.handshake",
    "precheck.check_inputs",
    "precheck.steps_per_epoch",
    "precheck.exactness",
    "precheck.schedule",
    "run.records.step_records",
    "run.run_dir",
    "distributed.secure.listener",
    "distributed.secure.secret",
    "reliability.stop",
)


def imported(code: str, folder: Path = ROOT) -> set[str]:
    """Which heavy packages a fresh interpreter holds after some code."""
    listing = f"import sys\nprint('\\nheld', *(name for name in {HEAVY!r} if name in sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-c", f"{code}\n{listing}"], capture_output=True, text=True, check=False, cwd=folder
    )
    assert answer.returncode == 0, answer.stderr
    return set(answer.stdout.splitlines()[-1].split()[1:])


def test_import_check_detects_a_heavy_package() -> None:
    """Or the tests here could not fail."""
    assert "numpy" in imported("import numpy")


def test_status_imports_nothing_heavy(tmp_path: Path) -> None:
    assert imported("from slurm.cli import main\nassert main(['status']) == 0", tmp_path) == set()


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_planning_imports_nothing_heavy(tmp_path: Path, options: list[str]) -> None:
    config = write_docnn(tmp_path)
    arguments = ["plan", str(config), *options]
    code = (
        f"from slurm.cli import main\ntry:\n    main({arguments!r})\n"
        "except SystemExit as end:\n    assert not end.code, end"
    )
    assert imported(code, tmp_path) == set()


@pytest.mark.parametrize("name", ["quickstart", "ned_wordnet", "spelling/sed_words_transformer"])
def test_planning_shipped_experiments_imports_nothing_heavy(tmp_path: Path, name: str) -> None:
    """Metrics, slices and tokenizers are named without numpy."""
    arguments = ["plan", str((ROOT / "configs" / f"{name}.yaml").resolve(strict=True)), "--json"]
    # The files that it names are not here, which is said behind the plan.
    code = f"from slurm.cli import main\nassert main({arguments!r}) in (0, 2)"
    assert imported(code, tmp_path) == set()


@pytest.mark.parametrize("write, folder", [(write_example, "."), (write_digits, "project")])
def test_planning_code_of_others_imports_nothing_heavy(
    tmp_path: Path, write: Callable[[Path], Path], folder: str
) -> None:
    """A third party's task, and functions of a user, which are read and not executed."""
    config = str(write(tmp_path / folder))
    code = f"from slurm.cli import main\nassert not main(['plan', {config!r}])"
    assert imported(code, tmp_path) == set()


def test_modules_above_the_torch_line_import_nothing_heavy() -> None:
    lines = "\n".join(f"import toolkit.{name}" for name in LIGHT)
    assert imported(f"import slurm.job.decide_restart\n{lines}") == set()


@pytest.mark.parametrize("path", sorted((ROOT / "slurm").rglob("*.py")), ids=lambda path: path.stem)
def test_module_of_the_submitter_names_no_heavy_package(path: Path) -> None:
    """Not even in a function: inside the job the worker is imported by its name."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(r"^\s*(?:from|import)\s+(torch|transformers|numpy)\b", text, re.MULTILINE)
    assert found == []
    assert not re.search(r"^\s*(?:from|import)\s+toolkit\.training\.worker\b", text, re.MULTILINE)


def test_training_library_does_not_mention_the_scheduler() -> None:
    """No SLURM_ variable is read, nothing of the submitter imported."""
    for path in (ROOT / "toolkit").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "SLURM_" not in text, path
        assert not re.search(r"^\s*(?:from|import)\s+(slurm|submitit)\b", text, re.MULTILINE), path


#: All but the workloads, and stk.py, which is where users find those of `custom`.
CORE = sorted(
    path
    for path in (*(ROOT / "toolkit").rglob("*.py"), *(ROOT / "slurm").rglob("*.py"))
    if not path.is_relative_to(ROOT / "toolkit" / "workloads")
)
#: Names of ours that are everyday words of training, too.
ORDINARY = {"command", "custom", "graph", "precision", "pretrained", "transformer"}
#: Words of the fields that our workloads are from.
DOMAIN = {
    *("classification", "classifier", "classifiers", "sentiment"),
    *("disambiguation", "entities", "entity", "mention", "mentions", "popularity", "wikipedia", "wordnet"),
    *("correction", "corrections", "corrector", "misspelling", "misspellings", "repair", "repairs", "spell"),
    *("spelling", "typo", "typos"),
}
#: Keys that the core knows: those that it declares, that of its examples of own functions, names of methods.
KEYS = {"kind", "path", "train", "validation", "test", "prepared_dir", "hidden", "metrics"}
#: Files that must use such a word, and why.
EXCEPTIONS = {
    "toolkit/nlp/encoder.py": {"classifier"}  # of a key in the configurations of transformers
}


def _ours() -> list[TaskSpec]:
    """The tasks of our workloads; not those of the toy, whose names may be any."""
    return [each for each in task_kinds().values() if each.config.__module__.startswith("toolkit.")]


@cache
def words_of_workloads() -> set[str]:
    """Workloads, task kinds, model kinds, metrics, and words of their fields."""
    tasks = _ours()
    workloads = {path.parent.name for path in (ROOT / "toolkit" / "workloads").glob("*/workload.py")}
    metrics = {each.name for task in tasks for each in (*task.metrics, *task.more_metrics)} - {LOSS.name}
    kinds = {name for task in tasks for name in (task.kind, *task.models)}
    return (workloads | kinds | metrics | DOMAIN) - ORDINARY


@cache
def keys_of_workloads() -> set[str]:
    """The keys of their sections, each behind the section's name and a point."""
    sections = {("task", task.config) for task in _ours()} | {("data", task.data) for task in _ours()}
    sections |= {("model", model) for task in _ours() for model, _ in task.models.values()}
    return {f"{name}.{key.name}" for name, of in sections for key in keys_of(of) if key.name not in KEYS}


def words_in(text: str) -> set[str]:
    """Whole names, and their parts: `TextClassifier`, `text_classifier` and `classifiers.py` alike."""
    names = set(re.findall(r"\w+", text))
    parts = {part for name in names for part in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)}
    return {word.lower() for word in names | parts}


@pytest.mark.parametrize(
    "text, word",
    [
        ("class SpellingTask:", "spelling"),
        ('raise DataError("set data.path, or use `stk entities`")', "entities"),
        ("def mean_of_mentions():", "mentions"),
        ("# a sum of macro_f1", "macro_f1"),
        ("metric = 'accuracy:max'", "accuracy"),
        ("MENTION_COUNT = 3", "mention"),
    ],
)
def test_workload_words_are_found_inside_names_and_texts(text: str, word: str) -> None:
    """Or the next test could not fail."""
    assert word in words_in(text) & words_of_workloads()


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.stem)
def test_core_mentions_no_workload(path: Path) -> None:
    """Neither in code nor in a text or a comment: what is said of one, the workload says."""
    text, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
    assert words_in(text) & words_of_workloads() == EXCEPTIONS.get(name, set())
    assert set(re.findall(r"(?<![\w.])(?:task|data|model)\.\w+", text)) & keys_of_workloads() == set()
    assert not re.search(r"\btoolkit[./]workloads\b", text)


def test_task_never_imports_another_task() -> None:
    folder = ROOT / "toolkit" / "workloads" / "spelling" / "tasks"
    tasks = {kind.task.partition(":")[0].rpartition(".")[2] for kind in task_kinds().values()}
    # Nor does the code that tasks share.
    for path in folder.rglob("[a-z]*.py"):
        text = path.read_text(encoding="utf-8")
        others = set(re.findall(r"workloads\.spelling\.tasks\.\w+\.(\w+)", text)) & tasks
        assert others <= {path.stem}, path


def test_only_the_command_and_the_renderers_print() -> None:
    """Others return or raise, so that --json stays one document."""
    folders = [ROOT / "slurm" / "commands", *(ROOT / "toolkit" / "workloads").glob("*/commands")]
    commands = {path.relative_to(ROOT).as_posix() for folder in folders for path in folder.rglob("*.py")}
    allowed = {
        "toolkit/training/output/progress_display.py",
        "toolkit/run/failure/exit_status.py",
        "slurm/cli.py",
        "slurm/job/decide_restart.py",
        *commands,
    }
    printing = {
        path.relative_to(ROOT).as_posix()
        for package in ("toolkit", "slurm")
        for path in (ROOT / package).rglob("*.py")
        if re.search(r"^\s*print\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert printing <= allowed


@pytest.mark.parametrize("package", ["slurm", "toolkit"])
def test_a_signal_handler_takes_no_lock(package: str) -> None:
    """It interrupts the main thread anywhere, even where that holds the lock: a deadlock."""
    locking = {"acquire", "notify", "notify_all", "put", "release", "set", "wait"}
    handlers = {
        (path.relative_to(ROOT).as_posix(), node)
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.Lambda) and "frame" in [each.arg for each in node.args.args]
    }
    assert handlers
    for name, handler in handlers:
        called = {
            call.func.attr
            for call in ast.walk(handler)
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        }
        assert not called & locking, f"{name}:{handler.lineno}"
