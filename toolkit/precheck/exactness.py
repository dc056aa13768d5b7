"""The cost of exactness in an earlier run of the same name, if it was high."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.config.schema import Experiment
from toolkit.precheck.last_run import newest_run
from toolkit.run.attempts.records import read_attempts
from toolkit.run.run_dir import RunDir
from toolkit.workload import Violation

#: Above this share of a step a warning names the alternative.
MOST_SHARE = 0.1


def exactness_warnings(experiment: Experiment) -> Iterator[Violation]:
    """Find that exact reduction took more than MOST_SHARE of each step."""
    if experiment.train.reduction == "fast":
        return
    newest = newest_run(experiment.name)
    share = None if newest is None else _measured_share(newest)
    if newest is not None and share is not None and share > MOST_SHARE:
        yield Violation(
            key=("train", "reduction"),
            problem=f"exact: computing {experiment.train.logical_ranks} logical ranks one after the other "
            f"took {100 * share:.0f} % of each step of {newest.run_id}",
            hint="train.reduction: fast computes them in one pass, equal but for rounding and random "
            "numbers (dropout); a lower train.logical_ranks costs less (each makes another run)",
        )


def _measured_share(run: RunDir) -> float | None:
    """The share of a step, from 0 to 1, in the newest attempt that measured it."""
    shares = [each.exact_share for each in read_attempts(run) if each.exact_share is not None]
    return shares[-1] if shares else None
