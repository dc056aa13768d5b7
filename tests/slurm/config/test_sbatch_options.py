"""Options by name are full names of sbatch's own options, and none that a job here cannot have."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slurm.config.resources import Resources
from slurm.config.sbatch_options import OTHERS, OURS
from slurm.submission.batch.job_options import components
from toolkit.config import check
from toolkit.errors import Fault, UserError

NAMES = (*OURS, *OTHERS)


def refusal(name: str, value: object = "x") -> str:
    with pytest.raises(UserError) as caught:
        components(Resources(sbatch={name: value}))
    return str(caught.value)


@pytest.mark.parametrize("name", OTHERS)
def test_an_option_of_sbatch_passes_in_both_spellings(name: str) -> None:
    for spelt in (name, name.replace("-", "_")):
        (component,) = components(Resources(sbatch={spelt: "x"}))
        assert component.options[name] == "x"


@pytest.mark.parametrize("name", OURS)
def test_an_option_that_a_job_relies_on_is_refused_with_the_reason(name: str) -> None:
    for spelt in (name, name.replace("-", "_")):
        for value in ("x", False) if name != "exclusive" else (True, False, None, 1, ""):
            assert f"resources.sbatch.{spelt}: cannot be set here ({OURS[name]})" in refusal(spelt, value)


@pytest.mark.parametrize("value", ["user", "mcs", "topo"])
def test_a_value_of_exclusive_passes_and_is_given_once(
    value: str, broken: Callable[..., list[Fault]]
) -> None:
    (component,) = components(Resources(exclusive=True, sbatch={"exclusive": value}))
    assert component.options["exclusive"] == value
    (fault,) = broken(resources={"exclusive": value})
    assert "resources.sbatch.exclusive" in fault.hint


def test_abbreviated_option_is_refused_with_the_full_name() -> None:
    """Or sbatch would take `arr` for `array`, past all that is refused."""
    for name in NAMES:
        for end in range(1, len(name)):
            if name[:end] not in NAMES:
                assert name in refusal(name[:end])


@pytest.mark.parametrize(
    "name, meant", [("exlude", "exclude"), ("pirority", "priority"), ("segments", "segment")]
)
def test_a_misspelt_name_is_answered_with_the_nearest_one(name: str, meant: str) -> None:
    assert f"did you mean {meant}?" in refusal(name)


def test_a_suggested_option_that_is_refused_comes_with_the_reason() -> None:
    assert f"did you mean requeue? It cannot be set here: {OURS['requeue']}" in refusal("requeu")
    assert f"did you mean exclude? It cannot be set here: {OURS['exclude']}" in refusal("exlude")


def test_all_refused_options_are_faults_of_the_experiment(broken: Callable[..., list[Fault]]) -> None:
    options = {"requeu": True, "nodes": 2, "priority": 1, "Bad": 1}
    found = broken(resources={"sbatch": options}, train={"epochs": 0})
    names = ["sbatch.Bad", "sbatch.nodes", "sbatch.requeu"]
    assert [each.key for each in found] == [*(f"resources.{name}" for name in names), "train.epochs"]


def test_a_recorded_experiment_is_read_even_if_an_option_is_refused_by_now(changed: Any) -> None:
    recorded = check(changed(resources={"sbatch": {"requeu": True}}), is_stored=True)
    with pytest.raises(UserError, match="requeu"):
        components(recorded.resources)


def test_unknown_option_is_refused() -> None:
    assert "sbatch --help" in refusal("qqqqqq")


def test_list_has_every_option_of_the_installed_sbatch(tmp_path: Path) -> None:
    if (program := shutil.which("sbatch")) is None:
        pytest.skip("sbatch is not installed: it cannot be asked for its options")
    config = tmp_path / "slurm.conf"
    config.write_text("ClusterName=x\nSlurmctldHost=localhost\nNodeName=n\nPartitionName=p Nodes=n\n")
    told = subprocess.run(
        [program, "--help"], env={"SLURM_CONF": str(config)}, capture_output=True, text=True, check=True
    )
    options = set(re.findall(r"(?<![\w-])--([a-z][a-z-]+)", told.stdout))
    assert len(options) > 80
    assert options <= set(NAMES)
