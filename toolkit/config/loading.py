"""From a file to a checked experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.config.checking import check_into
from toolkit.config.composition import file_faults, gather, read_mapping
from toolkit.config.includes import Includes
from toolkit.config.kinds import TASKS, TaskKind
from toolkit.config.overrides import apply
from toolkit.config.plain import to_plain
from toolkit.config.schema import Experiment, Resources
from toolkit.config.tree import COMMAND_LINE, Faults, suggest
from toolkit.config.yaml_files import Files


def load(
    path: Path,
    overrides: Sequence[str] = (),
    config_root: Path | None = None,
    *,
    files: Files | None = None,
) -> Experiment:
    """Compose and check an experiment file.

    files   what the runs of one sweep have in common; without it a section `sweep` is a fault
    Raises ConfigError with all faults of composition, types, limits and rules together.
    """
    faults = file_faults(path)
    return check_into(gather(path, overrides, config_root, faults, files), faults)


def load_resolved(path: Path) -> Experiment:
    """Read the stored experiment of a run: texts are taken literally, nothing is included.

    Raises ConfigError where the file is damaged.
    """
    faults = file_faults(path)
    return check_into(read_mapping(path, faults), faults)


def load_on_file(path: Path, file: Path, overrides: Sequence[str] = ()) -> Experiment:
    """Read the stored experiment of a run with another data file in place of its own, as `data.path`.

    overrides  of keys that say how the file is read; texts are taken literally
    Raises ConfigError, also for an override of any other key.
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
    return check_into(includes.tree, faults)


def _kind_in(tree: Mapping[str, Any]) -> TaskKind | None:
    """The table's row of a tree, if it names one."""
    task = tree.get("task")
    return TASKS.get(task.get("kind", "")) if isinstance(task, dict) else None


def _refuse_others(overrides: Sequence[str], tree: Mapping[str, Any], faults: Faults) -> None:
    """Record overrides of what the run has settled."""
    kind = _kind_in(tree)
    allowed = [f"data.{key}" for key in kind.file_keys] if kind else []
    for override in overrides:
        name = override.partition("=")[0].strip()
        if name not in allowed:
            problem = f"is settled by the run; for another file these can be set: {', '.join(allowed)}"
            faults.add(tuple(name.split(".")), problem, suggest(name, allowed), COMMAND_LINE)


def load_resources(path: Path, experiment: Experiment) -> Resources:
    """Read the stored resources of a submission of this experiment's run. Raises ConfigError."""
    faults = file_faults(path)
    tree = {**to_plain(experiment), "resources": read_mapping(path, faults)}
    return check_into(tree, faults).resources
