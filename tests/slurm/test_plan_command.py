"""stk plan"""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from slurm.plan import JobPlan
from tests.slurm.fake_slurm import FakeSlurm
from tests.slurm.house import House
from tests.toolkit.spelling_files import write_spelling_experiment
from toolkit.config import identity, load_resolved


def test_stk_plan_touches_nothing_and_asks_nobody(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data file, no Slurm, no experiment folder: a plan needs none of them."""
    monkeypatch.setenv("PATH", "")
    (house.root / "reviews.tsv").unlink()
    before = house.listing
    assert house.stk("plan", house.config).code == 0
    assert house.stk("plan", house.config, "--json", "resources.nodes=2").code == 0
    assert house.listing == before


def test_stk_plan_in_json_is_one_document_with_the_agreed_keys(house: House) -> None:
    overrides = ["resources.nodes=2", "resources.tasks_per_node=2", "resources.gres=gpu:2"]
    answer = house.stk("plan", house.config, *overrides, "--json")
    facts: dict[str, Any] = json.loads(answer.out)
    experiment = house.experiment(*overrides)
    assert set(facts) == {"run_id", "identity", "config", "script", "world_size"}
    assert facts["run_id"] == f"tiny-{identity(experiment)}"
    assert facts["identity"] == identity(experiment)
    assert facts["world_size"] == 4
    assert facts["config"]["resources"]["gres"] == "gpu:2"
    assert facts["script"] == str(
        JobPlan(experiment=experiment, resources=experiment.resources, run=house.run())
    )
    assert answer.err == ""


def test_stk_plan_for_people_shows_the_resolved_experiment_and_the_script(house: House) -> None:
    shown = house.stk("plan", house.config, "optimizer.lr=0.5").out
    head, _, rest = shown.partition("\n\n")
    resolved, _, script = rest.partition("# batch script\n\n")
    assert head == f"# {house.run('optimizer.lr=0.5').path}"
    assert yaml.safe_load(resolved)["optimizer"]["lr"] == 0.5
    facts = json.loads(house.stk("plan", house.config, "optimizer.lr=0.5", "--json").out)
    assert script == facts["script"] + "\n"
    stored = house.write("stored.yaml", resolved)
    assert identity(load_resolved(stored)) == facts["identity"]


@pytest.mark.parametrize("override", [
    "resources.nodes=4", "resources.tasks_per_node=8", "resources.gres=gpu:8", "resources.time=60",
    "resources.environment.A=b", "resources.setup=[module load cuda]", "resources.sbatch.nice=10",
    "checkpoint.every_steps=7",
])  # fmt: skip
def test_resources_never_change_the_run(house: House, override: str) -> None:
    plain = json.loads(house.stk("plan", house.config, "--json").out)
    other = json.loads(house.stk("plan", house.config, override, "--json").out)
    assert other["run_id"] == plain["run_id"]
    assert other["config"] != plain["config"]


def test_what_is_computed_changes_the_run(house: House) -> None:
    plain = json.loads(house.stk("plan", house.config, "--json").out)
    other = json.loads(house.stk("plan", house.config, "optimizer.lr=0.5", "--json").out)
    assert other["run_id"] != plain["run_id"]


def test_a_plan_of_texts_that_are_not_here_is_made_with_a_warning(house: House) -> None:
    config = write_spelling_experiment(house.root / "spelling")
    assert house.stk("plan", config).err == ""
    (house.root / "spelling" / "texts.txt").unlink()
    answer = house.stk("plan", config)
    assert answer.code == 0
    assert "#!/bin/bash" in answer.out
    assert f"data.datasets.0: {house.root}/spelling/texts.txt does not exist" in answer.err


def test_texts_that_are_not_here_are_never_submitted(house: House, fake: FakeSlurm) -> None:
    config = write_spelling_experiment(house.root / "spelling")
    (house.root / "spelling" / "texts.txt").unlink()
    answer = house.stk("submit", config)
    assert (answer.code, fake.jobs, house.runs) == (2, [], [])
    assert f"data.datasets.0: {house.root}/spelling/texts.txt does not exist" in answer.err
