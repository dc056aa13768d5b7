"""The runs of a sweep as experiments that have all been checked."""

from __future__ import annotations

import pytest

from slurm.sweeps.candidates import Combination, combine
from tests.slurm.support.user import User
from toolkit.errors import ConfigError, UserError
from toolkit.sweeps.sweep import Sweep, with_overrides


def combined(user: User, *overrides: str) -> list[Combination]:
    sweep = with_overrides(Sweep(), overrides)
    return combine(user.config, sweep, sweep.points())


def test_without_a_list_there_is_one_combination(user: User) -> None:
    (only,) = combined(user, "seed=3")
    assert (only.values, only.experiment.seed) == ({}, 3)


def test_all_faults_are_reported_with_their_combination(user: User) -> None:
    with pytest.raises(ConfigError) as caught:
        combined(user, "seed=1,x", "train.epochs=1,-2", "train.lr_=3")
    told = {fault.key: fault for fault in caught.value.faults}
    assert told["seed"].hint.endswith("in the run with seed=x train.epochs=1 and 1 more")
    assert told["train.epochs"].hint.endswith("in the run with seed=1 train.epochs=-2 and 1 more")
    assert "in the run" not in told["train.lr_"].hint


def test_resources_that_differ_are_refused_with_both_values(user: User) -> None:
    with pytest.raises(UserError, match=r"resources\.time is '10' with .*=10 and '20' with .*=20"):
        combined(user, "resources.time=10,20")
