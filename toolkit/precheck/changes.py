"""Changes of code and data since a run began."""

from __future__ import annotations

from toolkit.config.schema import Experiment
from toolkit.data.prepared.lookup import place_of_prepared_set
from toolkit.errors import DataError
from toolkit.files import read_object
from toolkit.run.events import forced_steps
from toolkit.run.kept_code.edited_code import edit_warnings, edits_since
from toolkit.run.new_settings import kept_values
from toolkit.run.run_dir import MANIFEST, RunDir


def change_warnings(run: RunDir, experiment: Experiment, *, new_code: bool) -> list[str]:
    """Return messages about changes, before the run continues or its results are shown.

    Changes of large files are found only if their checksums are known. Raises DataError as `data_warnings`.
    """
    edits = edit_warnings(run, experiment, new_code=new_code)
    if run.result.exists() and (kept := kept_values(run, experiment)):
        edits.append(f"{run.run_id} has finished with {kept}")
    return [*edits, *data_warnings(run, experiment, new_code=new_code)]


def data_warnings(run: RunDir, experiment: Experiment, *, new_code: bool = False) -> list[str]:
    """The same about data. Raises DataError if an unfinished run would refuse all its checkpoints."""
    steps = run.checkpoint_steps()
    place = place_of_prepared_set(experiment.data) if steps else None
    if place is None or _fits(run, steps[-1], place[1]):
        return []
    if not new_code and edits_since(run, experiment).core:
        # Its own version may give the same data another fingerprint.
        return []
    if run.result.exists():
        return [f"{run.run_id} has finished with other data: they have changed since (--fresh trains anew)"]
    raise DataError(
        f"the data of {run.run_id} have changed since its step {steps[-1]}, so it will not continue: restore "
        f"them, use --fresh, or continue anyway with stk resume {run.run_id} --force"
    )


def _fits(run: RunDir, step: int, data: str) -> bool:
    """Whether a checkpoint has these data, or its use was forced; true if its manifest cannot be read."""
    manifest = read_object(run.checkpoint(step) / MANIFEST)
    return manifest.get("data", data) == data or step in forced_steps(run)
