"""Noise in an experiment: nested kinds, limits, and the order of noises."""

from __future__ import annotations

from typing import Any

import pytest

from tests.toolkit.workloads.spelling.noisy import tree
from toolkit.config import check
from toolkit.config.composition.interpolation import Resolved
from toolkit.config.serialize import to_plain
from toolkit.workloads.spelling.config.noise import MixedNoise


def noise_in(section: Any) -> Any:
    return check(tree(section)).data.noise


def test_the_kind_decides_the_keys(working_folder):
    noise = noise_in({"kind": "mixed", "misspellings": "m.json", "rate": Resolved("0.3")})
    assert noise == MixedNoise(misspellings=str(working_folder / "m.json"), rate=0.3)


def test_a_checked_experiment_can_be_written_and_checked_again():
    inner = {"kind": "switch", "choices": ["none", {"kind": "artificial", "at_least": 1}], "weights": [1, 3]}
    experiment = check(tree({"kind": "chained", "steps": [inner, "save", "replace", "whitespace"]}))
    assert check(to_plain(experiment)) == experiment


@pytest.mark.parametrize(
    "section, key, problem",
    [
        ({"kind": "mixxed"}, "data.noise.kind", "found 'mixxed' (text), expected one of none, artificial"),
        ({"rate": 0.2}, "data.noise.kind", "is missing, expected one of none"),
        (3, "data.noise", "found 3 (a whole number), expected a section with the key kind"),
        ("realistic", "data.noise.misspellings", "is missing, expected the name of a file"),
        ({"kind": "artificial", "rate": 1.2}, "data.noise.rate", "expected a number from 0 to 1"),
        ({"kind": "artificial", "artificial": 1}, "data.noise.artificial", "there is no such key"),
        ({"kind": "chained", "steps": "none"}, "data.noise.steps", "expected a list of sections"),
        ({"kind": "chained", "steps": [{"kind": "no"}]}, "data.noise.steps.0.kind", "found 'no'"),
        ({"kind": "chained", "steps": []}, "data.noise.steps", "expected at least one noise"),
        ({"kind": "switch", "choices": []}, "data.noise.choices", "expected at least one noise"),
        (
            {"kind": "switch", "choices": ["none", "save"], "weights": [1]},
            "data.noise.weights",
            "found 1, expected one for each of the 2 choices",
        ),
        ({"kind": "switch", "choices": ["none"], "weights": [0]}, "data.noise.weights", "found only zeros"),
        ({"kind": "whitespace", "none": 0.6, "every": 0.5}, "data.noise.every", "is more than 1"),
        (
            {"kind": "chained", "steps": ["whitespace", "artificial"]},
            "data.noise.steps.1.kind",
            "found artificial after whitespace",
        ),
        (
            {"kind": "chained", "steps": [{"kind": "switch", "choices": ["none", "whitespace"]}, "replace"]},
            "data.noise.steps.1.kind",
            "found replace after whitespace",
        ),
    ],
)
def test_an_error_names_its_key(section, key, problem, faults):
    (fault,) = faults(check, tree(section))
    assert fault.key == key
    assert problem in fault.problem


def test_the_choices_of_a_switch_have_no_order():
    assert noise_in({"kind": "switch", "choices": ["whitespace", "artificial"]})
