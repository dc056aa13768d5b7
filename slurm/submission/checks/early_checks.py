"""Checks of an experiment before its job waits in the queue: all errors in one message, and warnings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from slurm.submission.allowed_options import unused_variables
from slurm.submission.checks.gpu_checks import gpus_without_ranks, hidden_gpus, ranks_without_gpus
from toolkit.config.origins import Origins
from toolkit.config.schema import Experiment
from toolkit.precheck.check_inputs import input_violations
from toolkit.precheck.violation_messages import raise_violations, violation_lines
from toolkit.precheck.warm_start import WARM_START, check_shapes
from toolkit.precheck.warnings import experiment_warnings


def check_before_queue(
    experiment: Experiment,
    origins: Origins | None,
    cluster: str,
    coming: Mapping[Path, Experiment] | None = None,
) -> list[str]:
    """Return a line for each warning. Raise DataError, which has them as well, if the run would fail.

    origins   where the experiment's keys were written
    cluster   slurm or local; with local the GPUs that the experiment asks Slurm for are not checked
    coming    runs that will have finished when this one begins, by their folders
    """
    found = list(input_violations(experiment, coming=coming))
    if cluster == "slurm":
        found += ranks_without_gpus(experiment)
    sections = {each.key[0] for each in found}
    if sections.isdisjoint(("data", "model")) and all(each.key != WARM_START for each in found):
        found += check_shapes(experiment)
    warnings = list(experiment_warnings(experiment, of_data="data" not in sections))
    if cluster == "slurm":
        warnings += gpus_without_ranks(experiment)
        warnings += hidden_gpus(experiment)
    raise_violations(found, origins, warnings)
    lines = violation_lines(warnings, origins)
    if cluster == "slurm":
        lines += unused_variables(experiment.resources, os.environ)
    return lines
