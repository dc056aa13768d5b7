"""Opening the task of an experiment on all ranks: its data are prepared once and are the same everywhere."""

from __future__ import annotations

from toolkit.config.schema import Experiment
from toolkit.data.sources.file_digests import hand_over
from toolkit.distributed.process_group import Group
from toolkit.distributed.shared_folder import check_same_data
from toolkit.task import Report, Task, task_class


def open_task(experiment: Experiment, group: Group, report: Report) -> Task:
    """Prepare the data on rank 0, or on one rank of each machine, then open them on all ranks. Collective.

    The other ranks wait, without a timeout. Raises DataError if the ranks have different data.
    """
    kind = task_class(experiment)
    first = group.main_first if group.shares_folder else group.nodes_first
    first(lambda: kind.prepare(experiment, report))
    hand_over(group.gather)
    task = kind(experiment)
    check_same_data(task.fingerprint, group)
    return task
