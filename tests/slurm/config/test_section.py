"""Messages of the training library end with the keys of `resources` that they advise to change."""

from __future__ import annotations

from dataclasses import fields
from typing import get_args

import pytest

from slurm.config.resources import Resources
from slurm.config.section import RESOURCES
from toolkit.config.sections import Setting
from toolkit.run.failure.classes import advice_on


def test_each_setting_has_a_hint_with_a_key_of_resources() -> None:
    keys = {f"resources.{each.name}" for each in fields(Resources)}
    assert set(RESOURCES.hints) == set(get_args(Setting))
    for hint in RESOURCES.hints.values():
        assert set(hint.split()) & keys


@pytest.mark.parametrize(
    "failure, key",
    [("node_failure", "resources.exclude"), ("oom_killed", "resources.mem"), ("launch", "resources.exclude")],
)
def test_the_advice_on_a_failure_names_the_key(failure: str, key: str) -> None:
    assert key in advice_on(failure)
