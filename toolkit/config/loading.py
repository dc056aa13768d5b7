"""Load a file as a checked experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.config.checking.validate import check_into
from toolkit.config.composition.compose import file_faults, gather, read_mapping
from toolkit.config.composition.includes import Includes
from toolkit.config.composition.overrides import apply
from toolkit.config.composition.yaml_files import Files
from toolkit.config.faults import Faults
from toolkit.config.origins import COMMAND_LINE, Origins
from toolkit.config.schema import Experiment
from toolkit.config.secrets import require_secrets
from toolkit.config.serialize import to_plain
from toolkit.registry import task_kinds
from toolkit.system.output.nearest import suggest
from toolkit.workload import TaskSpec


def load(
    path: Path, overrides: Sequence[str] = (), config_root: Path | None = None, *, files: Files | None = None
) -> Experiment:
    """Compose and check an experiment file.

    files   shared by the runs of one sweep; without it a section `sweep` is a fault
    Raises ConfigError with all faults of composition, types, limits and rules together.
    """
    faults = file_faults(path)
    return check_into(gather(path, overrides, config_root, faults, files), faults)


def load_with_origins(path: Path, overrides: Sequence[str] = ()) -> tuple[Experiment, Origins]:
    """As `load`, with the place where each key was written."""
    faults = file_faults(path)
    return check_into(gather(path, overrides, None, faults), faults), faults.origins


def load_resolved(path: Path, resources: Path | None = None) -> Experiment:
    """Read the stored experiment of a run: texts are taken literally, nothing is included.

    resources   those of the run's last submission, if this file exists; None: those that are in `path`

    A reference to a variable with the name of a secret becomes its value if it is set, and else stays.
    Raises ConfigError if a file is damaged.
    """
    faults = file_faults(path)
    tree = read_mapping(path, faults)
    if resources is not None and resources.exists():
        tree["resources"] = read_mapping(resources, faults, key=("resources",))
    return check_into(tree, faults, is_stored=True)


def load_to_run(path: Path) -> Experiment:
    """Read the stored experiment of a run to start or to use it.

    Raises ConfigError as `load_resolved` does, and UserError if a secret variable that it names is not set.
    """
    experiment = load_resolved(path)
    require_secrets(to_plain(experiment))
    return experiment


def load_on_file(path: Path, file: Path, overrides: Sequence[str] = ()) -> Experiment:
    """Read the stored experiment of a run with another data file in place of its own, as `data.path`.

    overrides  of keys that set how the file is read; texts are taken literally
    Raises ConfigError, also for an override of any other key, and UserError as `load_to_run` does.
    """
    faults = file_faults(path)
    includes = Includes(path.parent, faults)
    includes.tree = read_mapping(path, faults)
    data = includes.tree.get("data")
    kind = _kind_in(includes.tree)
    if isinstance(data, dict) and kind is not None:
        data.update({"path": str(file)} | dict.fromkeys(kind.own_files))
    apply(overrides, includes)
    includes.expand(includes.tree, ())
    _refuse_others(overrides, includes.tree, faults)
    experiment = check_into(includes.tree, faults, is_stored=True)
    require_secrets(to_plain(experiment))
    return experiment


def _kind_in(tree: Mapping[str, Any]) -> TaskSpec | None:
    """The task kind of a tree; None if it names no installed one."""
    task = tree.get("task")
    return task_kinds().get(task.get("kind", "")) if isinstance(task, dict) else None


def _refuse_others(overrides: Sequence[str], tree: Mapping[str, Any], faults: Faults) -> None:
    """Record overrides of keys that the run has fixed."""
    kind = _kind_in(tree)
    allowed = [f"data.{key}" for key in kind.file_keys] if kind else []
    for override in overrides:
        name = override.partition("=")[0].strip()
        if name not in allowed:
            others = f"; for another file these can be set: {', '.join(allowed)}" if allowed else ""
            problem = f"is fixed by the run{others}"
            faults.add(tuple(name.split(".")), problem, suggest(name, allowed), COMMAND_LINE)
