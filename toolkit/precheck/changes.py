"""What has changed since a run was begun: its code, and its data."""

from __future__ import annotations

from toolkit.config.schema import Experiment
from toolkit.data.prepared.lookup import place_of_prepared_set
from toolkit.files import read_json
from toolkit.run.edited_code import edit_warnings
from toolkit.run.run_dir import MANIFEST, RunDir


def change_warnings(run: RunDir, experiment: Experiment, *, new_code: bool) -> list[str]:
    """Return messages about what has changed, before the run continues or its results are shown.

    Of data in large files only what is remembered of them is known.
    """
    return [*edit_warnings(run, experiment, new_code=new_code), *_data_warnings(run, experiment)]


def _data_warnings(run: RunDir, experiment: Experiment) -> list[str]:
    steps = run.checkpoint_steps()
    place = place_of_prepared_set(experiment.data) if steps else None
    if place is None:
        return []
    try:
        manifest = read_json(run.checkpoint(steps[-1]) / MANIFEST) or {}
    except (OSError, ValueError):
        return []
    if manifest.get("data", place[1]) == place[1]:
        return []
    if run.result.exists():
        return [f"{run.run_id} has finished with other data: they have changed since (--fresh trains anew)"]
    return [
        f"the data of {run.run_id} have changed since its step {steps[-1]}, so it will not go on: put them "
        "back, use --fresh, or stk resume --force, which goes on all the same"
    ]
