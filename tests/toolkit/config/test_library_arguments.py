"""Arguments of torch's optimizers and transformers' schedules, read without importing them."""

from __future__ import annotations

import inspect

import pytest
import torch
from transformers import SchedulerType, optimization

from toolkit.config.library_arguments import (
    NO_SCHEDULES,
    OPTIMIZERS,
    SCHEDULES,
    LibraryCallable,
    arguments_of,
    fits,
)


@pytest.mark.parametrize("name", [*OPTIMIZERS, *SCHEDULES])
def test_parsed_arguments_equal_the_signature_in_the_installed_library(name: str) -> None:
    of = OPTIMIZERS.get(name) or SCHEDULES[name]
    there = getattr(torch.optim if name in OPTIMIZERS else optimization, of.name)
    parameters = {
        each.name: each.default is each.empty
        for each in inspect.signature(there).parameters.values()
        if each.name not in of.ours
    }
    assert {each: argument.is_needed for each, argument in arguments_of(of).items()} == parameters


def test_every_schedule_of_transformers_is_supported_or_has_an_alternative() -> None:
    own = {"constant", "linear", "cosine"}
    assert {each.value for each in SchedulerType} <= own | {*SCHEDULES} | {*NO_SCHEDULES}


def test_a_class_that_the_installed_library_lacks_is_named() -> None:
    with pytest.raises(LookupError, match="the installed torch has no Adom"):
        arguments_of(LibraryCallable(package="torch", module="optim/adam.py", name="Adom"))


@pytest.mark.parametrize(
    "value, annotation, is_meant",
    [
        (True, "bool", True),
        (1, "bool", False),
        (1, "float", True),
        (True, "float", False),
        ("1", "float | None", False),
        (None, "float | None", True),
        ([0.9, 0.99], "tuple[float, float]", True),
        (0.9, "tuple[float, float]", False),
        (0.9, "", True),
        ("linear", "str", True),
    ],
)
def test_values_are_checked_against_annotations(value: object, annotation: str, is_meant: bool) -> None:
    assert fits(value, annotation) == is_meant
