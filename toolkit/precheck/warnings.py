"""Warnings: settings that work but are probably a mistake, in the schedules, the reduction and the data."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.config.schema import Experiment
from toolkit.precheck.exactness import exactness_warnings
from toolkit.precheck.schedule import schedule_warnings
from toolkit.workload import Violation


def experiment_warnings(experiment: Experiment, *, of_data: bool) -> Iterator[Violation]:
    """Find settings that the user should check before waiting for the run.

    of_data   search the data as well, which have no violations then
    """
    yield from schedule_warnings(experiment)
    yield from exactness_warnings(experiment)
    if of_data:
        yield from experiment.data.warnings()
