"""The next runs, proposed by a sampler of Optuna from the results of the finished runs.

No study is stored and nothing waits: each time the study is rebuilt from the runs' results.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from toolkit.errors import UserError
from toolkit.sweeps.results.collect import Results, without_seed
from toolkit.sweeps.spaces import LogUniform, RandInt, Space, Uniform, number_in, number_text
from toolkit.sweeps.sweep import Point, Sweep

#: Optuna's other samplers need torch or scipy, or propose the same points again in a new study.
SAMPLERS = ("tpe",)


def propose(sweep: Sweep, known: Results | None) -> list[Point]:
    """`sweep.samples` new points, without seeds. known: the runs so far; their mean over seeds counts.

    Raises UserError if Optuna is missing or the sampler is unknown.
    """
    optuna = _optuna()
    spaces = {key: _distribution(optuna, space) for key, space in sweep.parameters.items()}
    so_far = [] if known is None else _trials(optuna, spaces, known)
    direction = "minimize" if known is not None and known.goal == "min" else "maximize"
    study = optuna.create_study(direction=direction, sampler=_sampler(optuna, sweep, len(so_far)))
    study.add_trials(so_far)
    points: list[Point] = []
    for _ in range(sweep.samples or 0):
        drawn = study.ask(spaces).params
        points.append({key: _as_written(drawn[key], spaces[key]) for key in spaces})
    return points


def _optuna() -> Any:
    try:
        # Late: it takes a second to import, and few sweeps need it.
        import optuna
    except ImportError:
        missing = "this sweep needs a sampler of Optuna, which is not installed"
        raise UserError(f"{missing}: pip install 'slurm-toolkit[optuna]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _sampler(optuna: Any, sweep: Sweep, so_far: int) -> Any:
    if sweep.sampler not in SAMPLERS:
        raise UserError(f"unknown sampler {sweep.sampler!r}; known are: {', '.join(SAMPLERS)}")
    # Includes the number of runs: otherwise each call would begin with the same proposals.
    seed = (sweep.seed * 1_000_003 + so_far) % 2**32
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        # Unfinished runs count as poor, so that the points of a batch do not cluster.
        return optuna.samplers.TPESampler(seed=seed, constant_liar=True)


def _distribution(optuna: Any, space: Space) -> Any:
    kinds = optuna.distributions
    if isinstance(space, Uniform | LogUniform):
        return kinds.FloatDistribution(space.low, space.high, log=isinstance(space, LogUniform))
    if isinstance(space, RandInt):
        return kinds.IntDistribution(space.low, space.high)
    return kinds.CategoricalDistribution(space.values)


def _trials(optuna: Any, spaces: Mapping[str, Any], known: Results) -> list[Any]:
    """The runs so far, averaged over seeds; without runs of other keys or outside of the current ranges."""
    means = {without_seed(group.values): group.mean for group in known.groups}
    if not means:
        means = {without_seed(row.values): row.value for row in known.ranked if row.value is not None}
    trials = []
    for key in dict.fromkeys(without_seed(row.values) for row in known.rows):
        values = dict(key)
        drawn = {name: _read(spaces[name], values[name]) for name in spaces if name in values}
        if len(drawn) < len(spaces) or not all(_holds(spaces[name], drawn[name]) for name in spaces):
            continue
        state = optuna.trial.TrialState.COMPLETE if key in means else optuna.trial.TrialState.RUNNING
        trials.append(
            optuna.trial.create_trial(state=state, params=drawn, distributions=spaces, value=means.get(key))
        )
    return trials


def _read(distribution: Any, value: str) -> Any:
    """A written value in the distribution's type; categories stay as written."""
    number = number_in(value)
    if hasattr(distribution, "choices") or number is None:
        return value
    return int(number) if isinstance(distribution.low, int) and number.is_integer() else number


def _holds(distribution: Any, value: Any) -> bool:
    if hasattr(distribution, "choices"):
        return value in distribution.choices
    return not isinstance(value, str) and bool(distribution.low <= value <= distribution.high)


def _as_written(value: Any, within: Any) -> str:
    return number_text(value, within.low, within.high) if isinstance(value, float) else str(value)
