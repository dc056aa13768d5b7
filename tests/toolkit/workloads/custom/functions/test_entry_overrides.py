"""Overrides of single entries of a function's lists and mappings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.toolkit.workloads.custom.own_digits import DIGITS, EXPERIMENT, faults
from toolkit.config import load
from toolkit.config.serialize import to_plain


@pytest.mark.parametrize(
    "declared", ["{}: list[int] = [1, 2]", "{}: list = [1, 2]", "{}=[1, 2]", "{}=(1, 2)"]
)
@pytest.mark.parametrize(
    "entry, expected", [("0=3", [3, 2]), ("1=3", [1, 3]), ("2=3", [1, 2, 3]), ("3=3", None)]
)
@pytest.mark.parametrize("section", ["model", "data", "optimizer"])
def test_override_of_an_entry_keeps_the_other_entries_of_a_default_list(
    config: Path, declared: str, entry: str, expected: list[int] | None, section: str
) -> None:
    parameter = declared.format("widths")
    code = DIGITS.replace("def model(", f"def model({parameter}, ").replace("few:", f"{parameter}, few:")
    code += f"\ndef optimizer(model, lr=0.1, {parameter}):\n    pass\n"
    (config.parent / "digits.py").write_text(code)
    override = f"{section}.widths.{entry}"
    if expected is None:
        (fault,) = faults(config, override)
        assert f"{section}.widths.3: " in fault
        assert "from 0 to 2" in fault
        return
    of_section = to_plain(load(config, [override]))[section]
    assert of_section.get("arguments", of_section)["widths"] == expected


def test_override_of_an_entry_keeps_the_other_momenta_of_an_own_optimizer(config: Path) -> None:
    source = "\ndef optimizer(model, lr=0.1, betas: list[float] = [0.7, 0.8]):\n    pass\n"
    (config.parent / "digits.py").write_text(DIGITS + source)
    assert load(config, ["optimizer.betas.1=0.9"]).optimizer.betas == (0.7, 0.9)


def test_override_of_an_entry_makes_a_mapping_if_an_own_optimizer_has_no_default(config: Path) -> None:
    (config.parent / "digits.py").write_text(
        f"{DIGITS}\ndef optimizer(model, lr=0.1, layers=None):\n    pass\n"
    )
    assert load(config, ["optimizer.layers.0=0.5"]).optimizer.arguments["layers"] == {"0": 0.5}


@pytest.mark.parametrize(
    "name, entry, expected",
    [
        ("betas", "0=0.8", (0.8, 0.999)),
        ("betas", "1=0.9", (0.9, 0.9)),
        ("no_decay", "0=x", ("x", "norm")),
        ("no_decay", "1=x", ("bias", "x")),
        ("no_decay", "3=x", None),
    ],
)
@pytest.mark.parametrize("declared", ["*, {}", "{}=None", "{}: {} = None"])
def test_override_of_an_entry_keeps_those_of_the_section_if_an_own_optimizer_has_no_list(
    config: Path, declared: str, name: str, entry: str, expected: tuple[Any, ...] | None
) -> None:
    parameter = declared.format(name, "list[float]" if name == "betas" else "list[str]")
    (config.parent / "digits.py").write_text(
        f"{DIGITS}\ndef optimizer(model, lr=0.1, {parameter}):\n    pass\n"
    )
    if expected is None:
        (fault,) = faults(config, f"optimizer.{name}.{entry}")
        assert "from 0 to 2" in fault
        return
    assert getattr(load(config, [f"optimizer.{name}.{entry}"]).optimizer, name) == expected


@pytest.mark.parametrize(
    "written, overrides, expected",
    [
        ({}, ["a=5"], {"a": 5, "b": [2, 3]}),
        ({}, ["b.1=5", "c=6"], {"a": 1, "b": [2, 5], "c": 6}),
        # A mapping that is written replaces the default.
        ({"a": 4}, ["c=6"], {"a": 4, "c": 6}),
        ({"b": {"1": 5}}, [], {"b": {"1": 5}}),
    ],
)
@pytest.mark.parametrize("section", ["model", "optimizer"])
def test_override_within_a_default_mapping_keeps_its_other_keys(
    config: Path, written: dict[str, Any], overrides: list[str], expected: dict[str, Any], section: str
) -> None:
    parameter = "widths={'a': 1, 'b': [2, 3]}"
    code = DIGITS.replace("def model(", f"def model({parameter}, ")
    (config.parent / "digits.py").write_text(
        f"{code}\ndef optimizer(model, lr=0.1, {parameter}):\n    pass\n"
    )
    experiment = yaml.safe_load(EXPERIMENT) | ({section: {"widths": written}} if written else {})
    config.write_text(yaml.safe_dump(experiment))
    found = to_plain(load(config, [f"{section}.widths.{each}" for each in overrides]))[section]
    assert found.get("arguments", found)["widths"] == expected
