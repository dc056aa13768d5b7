"""From a file to a checked experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from toolkit.config.checking import check_into
from toolkit.config.composition import file_faults, gather, read_mapping
from toolkit.config.plain import to_plain
from toolkit.config.schema import Experiment, Resources


def load(path: Path, overrides: Sequence[str] = (), config_root: Path | None = None) -> Experiment:
    """Compose and check an experiment file.

    Raises ConfigError with all faults of composition, types, limits and rules together.
    """
    faults = file_faults(path)
    return check_into(gather(path, overrides, config_root, faults), faults)


def load_resolved(path: Path) -> Experiment:
    """Read the stored experiment of a run: texts are taken literally, nothing is included.

    Raises ConfigError where the file is damaged.
    """
    faults = file_faults(path)
    return check_into(read_mapping(path, faults), faults)


def load_resources(path: Path, experiment: Experiment) -> Resources:
    """Read the stored resources of a submission of this experiment's run. Raises ConfigError."""
    faults = file_faults(path)
    tree = {**to_plain(experiment), "resources": read_mapping(path, faults)}
    return check_into(tree, faults).resources
