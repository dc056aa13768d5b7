"""The cost of exactness in an earlier run of the same name, if it was high."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.config.schema import Experiment
from toolkit.precheck.last_run import newest_run
from toolkit.run.attempts.records import read_attempts
from toolkit.workload import Violation

#: Above this share of a step a warning names the alternative.
MOST_SHARE = 0.1


def exactness_warnings(experiment: Experiment) -> Iterator[Violation]:
    """Find that exact reduction took more than MOST_SHARE of each step."""
    newest = None if experiment.train.reduction == "fast" else newest_run(experiment.name)
    if newest is None:
        return
    shares = [each.exact_share for each in read_attempts(newest) if each.exact_share is not None]
    if shares and shares[-1] > MOST_SHARE:
        yield Violation(
            key=("train", "reduction"),
            problem=f"exact: computing {experiment.train.logical_ranks} logical ranks one after the other "
            f"took {100 * shares[-1]:.0f} % of each step of {newest.run_id}",
            hint="train.reduction: fast computes them in one pass, equal but for rounding and random "
            "numbers (dropout); a lower train.logical_ranks costs less (each makes another run)",
        )
