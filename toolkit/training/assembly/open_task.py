"""Opening the task of an experiment on all ranks: its data are prepared once and are the same everywhere."""

from __future__ import annotations

from toolkit.config.schema import Experiment
from toolkit.data.sources.file_digests import hand_over
from toolkit.distributed.process_group import Group
from toolkit.distributed.replica_check import check_same_data
from toolkit.reliability.stop import Stop, StoppedEarly, children_end_by_sigterm
from toolkit.task import Task, task_class
from toolkit.workload import Progress


def open_task(experiment: Experiment, group: Group, progress: Progress, stop: Stop) -> Task:
    """Prepare the data on rank 0, or on one rank of each machine, then open them on all ranks. Collective.

    The other ranks wait, without a timeout. Raises DataError if the ranks have different data, and
    StoppedEarly if a rank that prepares them is asked to stop.
    """
    kind = task_class(experiment)
    is_stopped = False

    def report_or_stop(what: str, done: int, total: int | None) -> None:
        # Nothing has to be saved.
        if stop.reason_to_stop(0.0) is not None:
            raise StoppedEarly
        progress(what, done, total)

    def prepare() -> None:
        nonlocal is_stopped
        try:
            kind.prepare(experiment, report_or_stop)
        except StoppedEarly:
            is_stopped = True

    first = group.main_first if group.shares_folder else group.nodes_first
    with children_end_by_sigterm():
        first(prepare)
        if group.any(is_stopped):
            raise StoppedEarly
        hand_over(group.gather)
        task = kind(experiment)
    check_same_data(task.fingerprint, group)
    return task
