"""A quick check of the files and weights that an experiment names, with all problems in one message.

It runs on a login node and imports nothing slow. The worker reads every row later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from toolkit.config.origins import Origins
from toolkit.config.schema import Experiment
from toolkit.data.sources.named_files import violation_of
from toolkit.precheck.steps_per_epoch import check_token_budget
from toolkit.precheck.violation_messages import raise_violations
from toolkit.precheck.warm_start import check_warm_start
from toolkit.registry import task_kinds
from toolkit.training.warm_start.find import check_earlier
from toolkit.workload import Violation


def check_inputs(experiment: Experiment, *, is_trained: bool = False, has_code: bool = False) -> None:
    """Raise DataError if files or weights that an experiment names are missing or do not match it.

    is_trained   whether the model is trained already: its initial weights are not checked then, and the
                 encoder of its texts was kept with the prepared data
    has_code     whether only its run has the code, because the user's is gone
    """
    raise_violations(input_violations(experiment, is_trained=is_trained, has_code=has_code), None)


def check_data(experiment: Experiment, origins: Origins) -> None:
    """As `check_inputs`, for the data alone. Preparing them needs neither a model nor an earlier run."""
    raise_violations(experiment.data.violations(), origins)


def input_violations(
    experiment: Experiment,
    *,
    is_trained: bool = False,
    coming: Mapping[Path, Experiment] | None = None,
    reads_data: bool = True,
    has_code: bool = False,
) -> Iterator[Violation]:
    """Find the violations that `check_inputs` turns into an error.

    coming       runs that will have finished when this one begins, by their folders
    reads_data   false if the same data were checked for another run
    """
    if not is_trained:
        yield from violation_of("train.start_from_checkpoint", check_earlier, experiment, coming)
        yield from check_warm_start(experiment, coming)
        yield from violation_of("train.batch_max_length", check_token_budget, experiment)
        if not has_code:
            yield from task_kinds()[experiment.task.kind].file_check(experiment)
    if reads_data:
        yield from experiment.data.violations(is_trained=is_trained)
    if not is_trained:
        yield from experiment.model.violations(experiment, coming=coming)
