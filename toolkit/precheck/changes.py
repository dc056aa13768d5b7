"""Changes of code, initial weights and data since a run began."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

from toolkit.config.schema import Experiment
from toolkit.data.prepared.lookup import changed_sources, place_of_prepared_set
from toolkit.errors import DataError
from toolkit.files import read_object
from toolkit.precheck.last_run import other_run_by_code
from toolkit.run.attempts.records import read_attempts
from toolkit.run.events import forced_steps
from toolkit.run.kept_code.edited_code import edit_warnings, edits_since
from toolkit.run.new_settings import kept_values
from toolkit.run.run_dir import MANIFEST, RunDir
from toolkit.training.warm_start.find import find_weights


def change_warnings(run: RunDir, experiment: Experiment, *, new_code: bool) -> list[str]:
    """Return messages about changes, before the run continues or its results are shown.

    Changes of large files are found only if their checksums are known. Raises DataError as `data_warnings`.
    """
    edits = [*other_run_by_code(run, experiment), *edit_warnings(run, experiment, new_code=new_code)]
    if run.result.exists() and (kept := kept_values(run, experiment)):
        edits.append(f"{run.run_id} has finished with {kept}")
    models: list[str] = []
    if run.result.exists() or run.checkpoint_steps():
        # Trained weights do not need the files that they began with.
        with suppress(DataError, OSError):
            models.extend(replaced_models(run, experiment))
    return [*edits, *models, *data_warnings(run, experiment, new_code=new_code)]


def replaced_models(run: RunDir, experiment: Experiment) -> Iterator[str]:
    """Yield a message for each key whose files of initial weights were modified after the start of the run.

    Raises DataError if another run that it began with is gone.
    """
    attempts = [each for each in read_attempts(run) if each.time_start]
    # An attempt without a checkpoint reads them again.
    started = [each for each in attempts if each.resumed is False][-1:] or attempts[:1]
    if not started:
        return
    named, key = list(experiment.model.files()), "train.start_from_checkpoint"
    if (name := experiment.train.start_from_checkpoint) is not None:
        named.append((key, find_weights(key, name).file))
    for key, path in named:
        files = ((each.stat().st_mtime, each) for each in (path, *path.glob("*")) if each.is_file())
        modified, file = max(files, default=(0.0, path))
        if modified > started[0].began:
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(modified))
            changed = f"{key}: {file} was modified on {when}, after the start of {run.run_id}"
            yield f"{changed}: it may have other weights"


def data_warnings(run: RunDir, experiment: Experiment, *, new_code: bool = False) -> list[str]:
    """The same about data. Raises DataError if an unfinished run would refuse all its checkpoints."""
    steps = run.checkpoint_steps()
    place = place_of_prepared_set(experiment.data) if steps else None
    if place is None:
        return []
    saved = read_object(run.checkpoint(steps[-1]) / MANIFEST).get("data", place[1])
    if saved == place[1] or steps[-1] in forced_steps(run):
        return []
    is_other_version = bool(edits_since(run, experiment).core)
    if is_other_version and not new_code:
        # Its own version may give the same data another fingerprint.
        return []
    or_other = ", or this version of slurm-toolkit reads them in another way" if is_other_version else ""
    files = changed_sources(experiment.data, saved)
    if run.result.exists():
        changed = f"they have changed since{files}{or_other}"
        return [f"{run.run_id} has finished with other data: {changed} (stk submit FILE --fresh trains anew)"]
    resume = f"stk resume {run.run_id}"
    if is_other_version:
        raise DataError(
            f"the data of {run.run_id} have changed since its step {steps[-1]}{files}{or_other}. {resume} "
            f"continues with the run's own version, and {resume} --new-code --force with this one"
        )
    raise DataError(
        f"the data of {run.run_id} have changed since its step {steps[-1]}{files}, so it will not continue: "
        f"restore them, use --fresh, or continue anyway with {resume}{' --new-code' * new_code} --force"
    )
