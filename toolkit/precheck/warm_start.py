"""Whether the initial weights of a run fit its model, as far as that is known without torch.

The run that the weights are from names its model, and the file holds the shapes. If the data are prepared, a
child process makes the model without values, and all names and shapes are compared; otherwise that is done
when the run starts.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from toolkit.checkpoint.loading.shapes import Shapes, Tensors, misfit, read_shapes
from toolkit.config import load_resolved, to_yaml
from toolkit.config.schema import Experiment
from toolkit.data.prepared.lookup import find_prepared_set, read_meta
from toolkit.data.sources.named_files import violation_of
from toolkit.errors import ConfigError, DataError
from toolkit.files import read_json, temporary_folder
from toolkit.training.warm_start.find import FIT, Coming, check_meaning, find_weights, run_of
from toolkit.workload import Violation

#: The key that names the initial weights.
WARM_START = ("train", "start_from_checkpoint")
#: Seconds for the child process: it imports torch, and often transformers.
_PATIENCE_S = 120.0
#: Tensors by the settings that determine them, which the runs of a sweep often share.
_known: dict[str, Tensors | None] = {}


def check_warm_start(experiment: Experiment, coming: Coming = None) -> Iterator[Violation]:
    """Find why the initial weights of an experiment do not fit its model.

    coming   runs by their folders, which will have finished when this one begins
    """
    name = experiment.train.start_from_checkpoint
    if name is None:
        return
    earlier = (coming or {}).get(Path(name).resolve()) or _experiment_of(Path(name))
    if earlier is not None and (problem := experiment.model.difference(earlier.model)):
        yield Violation(key=WARM_START, problem=f"{name} holds weights of another model: {problem}")
        return
    try:
        file = find_weights(".".join(WARM_START), name).file
    except DataError:
        # Reported elsewhere, or the run has not finished yet.
        return
    prepared = find_prepared_set(experiment.data)
    other = list(violation_of(".".join(WARM_START), check_meaning, experiment, prepared))
    yield from other or _odd_file(experiment, file, prepared)


def check_shapes(experiment: Experiment) -> Iterator[Violation]:
    """Find the tensors of the initial weights that do not fit the experiment's model.

    Starts a process with torch, which takes seconds, if there are such weights and the data are prepared.
    """
    name = experiment.train.start_from_checkpoint
    # A model that needs preparation would have to be prepared first.
    if name is None or experiment.model.needs_preparation or find_prepared_set(experiment.data) is None:
        return
    try:
        file = find_weights(".".join(WARM_START), name).file
        found = read_shapes(file)
    except DataError:
        # Reported elsewhere, or the run has not finished yet.
        return
    tensors = _tensors_of_model(experiment)
    if tensors is not None and (problem := misfit(found, tensors)):
        yield Violation(key=WARM_START, problem=f"{file} does not fit this model: {problem}", hint=FIT)


def _experiment_of(path: Path) -> Experiment | None:
    """Return the experiment of the run that a folder, a checkpoint or a file of weights belongs to."""
    try:
        return None if (run := run_of(path)) is None else load_resolved(run.config)
    except ConfigError:
        return None


def _odd_file(experiment: Experiment, file: Path, prepared: Path | None) -> Iterator[Violation]:
    """Find sizes that the model must have and that no tensor of the file has."""
    try:
        shapes = read_shapes(file)
    except DataError as error:
        yield Violation(key=WARM_START, problem=str(error))
        return
    rows = {shape[0] for shape in shapes.values() if shape}
    meta = {} if prepared is None else read_meta(prepared)
    for what, size in experiment.model.sizes(experiment.data, meta):
        if size not in rows:
            problem = f"{file} holds no weights for {size:,} {what}; it holds {_shown(shapes)}"
            yield Violation(key=WARM_START, problem=problem, hint=FIT)


def _shown(shapes: Shapes) -> str:
    """List the largest and the smallest tensors, by shape."""
    names = sorted(shapes, key=lambda name: shapes[name], reverse=True)
    shown = [
        f"{name} {list(shapes[name])}" for name in (names if len(names) <= 4 else names[:2] + names[-2:])
    ]
    return ", ".join(shown) or "nothing"


def _tensors_of_model(experiment: Experiment) -> Tensors | None:
    """Return names and shapes, for prepared data; None if the model cannot be made."""
    key = repr((experiment.task, experiment.data, experiment.model))
    if key not in _known:
        _known[key] = _tensors_by_child(experiment)
    return _known[key]


def _tensors_by_child(experiment: Experiment) -> Tensors | None:
    with temporary_folder() as folder:
        config, answer = folder / "config.yaml", folder / "answer.json"
        config.write_text(to_yaml(experiment), encoding="utf-8")
        command = [sys.executable, "-P", "-m", "toolkit.training.warm_start.shapes", str(config), str(answer)]
        try:
            subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=_PATIENCE_S
            )
        except subprocess.SubprocessError:
            # The run itself will report why.
            return None
        return [(names, tuple(shape)) for names, shape in read_json(answer)]
