"""`stk.plan`: what would be submitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slurm.api.asked import file_and_overrides, warn
from slurm.commands.experiments.plan import plan_text
from slurm.status.submissions import submissions
from slurm.submission.batch.batch_script import JobPlan
from slurm.submission.checks.early_checks import check_before_queue, check_code
from toolkit.config import load_with_origins, to_plain
from toolkit.precheck.changes import change_warnings
from toolkit.run.create_run import run_of


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan of a submission; printed it is the output of `stk plan`.

    run_id   name of the run: the same experiment has the same one
    folder   of the run; it need not be there
    script   the batch script that Slurm would get
    config   the experiment as a dictionary, defaults included
    """

    run_id: str
    folder: Path
    script: str
    config: dict[str, Any]
    _text: str = field(repr=False)

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


def plan(what: Any, /, *args: Any, overrides: Mapping[str, Any] | None = None, **kwargs: Any) -> Plan:
    """Check an experiment and return what `stk.submit` would do. Changes nothing.

    what, args, overrides, kwargs   as in `stk.submit`

    Raises stk.UserError with all errors of the experiment, and if the run would fail for a known reason.
    """
    path, words = file_and_overrides(what, args, kwargs, overrides, {"overrides": bool(overrides)})
    experiment, origins = load_with_origins(path, words)
    run = run_of(experiment)
    job = JobPlan(experiment=experiment, run=run, number=len(submissions(run)))
    warn(
        [*check_before_queue(experiment, origins, "slurm"), *change_warnings(run, experiment, new_code=False)]
    )
    check_code(experiment)
    return Plan(run.run_id, run.path, str(job), to_plain(experiment), plan_text(job, origins))
