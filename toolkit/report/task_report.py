"""A task's part of the report of its runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

from toolkit.errors import UserError
from toolkit.registry import load_code, not_imported, task_kinds
from toolkit.report.blocks import Section
from toolkit.report.plotting.curves import Columns
from toolkit.run.run_dir import RunDir

#: Last known metrics of each split.
Scores = Mapping[str, Mapping[str, float | None]]


class TaskReport:
    """The artifacts of a run, read once. A task names its subclass as `TaskSpec.report`.

    The methods import slow modules late, and never torch.

    shows_parts  whether it shows the metrics of parts of the data, name/part: no other table then shows them
    """

    shows_parts: ClassVar[bool] = False

    @classmethod
    def read(cls, run: RunDir, scores: Scores, curves: Mapping[str, Columns]) -> Self:
        """Read the artifacts of a run, which may have just begun. Raises DataError for damaged ones.

        curves   metrics of each split over the steps
        """
        return cls()

    def sections(self) -> Iterable[Section]:
        """Yield the sections, the most important first."""
        return ()

    def to_json(self) -> Mapping[str, Any]:
        """Return the artifacts' part of report.json: JSON values, with keys that no other part uses."""
        return {}

    @classmethod
    def compared(cls, runs: Sequence[tuple[str, Self]], split: str) -> Iterable[Section]:
        """Yield sections that compare several (name, report) pairs on one split."""
        return ()


def read_task_report(
    kind: str, run: RunDir, scores: Scores, curves: Mapping[str, Columns]
) -> TaskReport | None:
    """Read a task kind's part of the report; None if the kind is not installed or has no report.

    Raises UserError if its code cannot be imported.
    """
    spec = task_kinds().get(kind)
    if spec is None or not spec.report:
        return None
    try:
        report: type[TaskReport] = load_code(spec.report)
    # Whatever it raises at its import is no fault of the run's files.
    except (Exception, SystemExit) as error:
        raise UserError(not_imported(spec.report, error)) from error
    return report.read(run, scores, curves)
