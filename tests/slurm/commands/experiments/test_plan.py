"""stk plan"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from safetensors.numpy import save_file

from slurm.submission.batch.batch_script import JobPlan
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import User
from tests.toolkit.config.composing import compose
from toolkit.config import load_resolved
from toolkit.config.identity import identity
from toolkit.files import append_json_line
from toolkit.precheck.steps_per_epoch import steps_per_epoch
from toolkit.run.create_run import create_run


def test_stk_plan_writes_no_file_and_starts_no_program(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Slurm, no experiment folder: a plan needs neither."""
    monkeypatch.setenv("PATH", "")
    before = user.listing
    assert user.stk("plan", user.config).code == 0
    assert user.stk("plan", user.config, "--json", "resources.nodes=2").code == 0
    assert user.listing == before


def test_stk_plan_in_json_is_one_document_with_the_agreed_keys(user: User) -> None:
    overrides = ["resources.nodes=2", "resources.tasks_per_node=2", "resources.gres=gpu:2"]
    answer = user.stk("plan", user.config, *overrides, "--json")
    facts: dict[str, Any] = json.loads(answer.out)
    experiment = user.experiment(*overrides)
    assert set(facts) == {"run_id", "identity", "config", "script", "world_size"}
    assert facts["run_id"] == f"tiny-{identity(experiment)}"
    assert facts["identity"] == identity(experiment)
    assert facts["world_size"] == 4
    assert facts["config"]["resources"]["gres"] == "gpu:2"
    assert facts["script"] == str(JobPlan(experiment=experiment, run=user.run()))
    assert answer.err == ""


def test_stk_plan_for_people_shows_the_resolved_experiment_and_the_script(user: User) -> None:
    shown = user.stk("plan", user.config, "optimizer.lr=0.5").out
    head, _, rest = shown.partition("\n\n")
    resolved, _, script = rest.partition("# batch script\n\n")
    assert head.splitlines()[0] == f"# {user.run('optimizer.lr=0.5').path}"
    assert yaml.safe_load(resolved)["optimizer"]["lr"] == 0.5
    facts = json.loads(user.stk("plan", user.config, "optimizer.lr=0.5", "--json").out)
    assert script == facts["script"] + "\n"
    stored = user.write("stored.yaml", resolved)
    assert identity(load_resolved(stored)) == facts["identity"]


def test_a_plan_says_where_each_key_was_set_and_keeps_the_defaults_short(user: User) -> None:
    shown = user.stk("plan", user.config, "optimizer.lr=0.5", "resources.environment={A: 'a # b: \"c\"'}").out
    written, _, rest = shown.partition("# defaults\n")
    defaults, _, _ = rest.partition("# batch script")
    (line,) = [line for line in written.splitlines() if line.startswith("  lr: ")]
    assert line.split() == ["lr:", "0.5", "#", "command", "line"]
    (line,) = [line for line in written.splitlines() if line.startswith("  path: ")]
    assert line.endswith(f"tiny.yaml:{line_of(user.config, 'path:')}")
    assert yaml.safe_load(written)["resources"]["environment"] == {"A": 'a # b: "c"'}
    assert "weight_decay" in defaults
    assert "weight_decay" not in written
    assert "lr 0.5" not in defaults
    assert len(shown.partition("# batch script")[0].splitlines()) < 70
    assert all(line.startswith("#") for line in defaults.strip().splitlines())


def test_plan_shows_the_number_of_steps_once_the_data_are_prepared(user: User) -> None:
    before = user.stk("plan", user.config, "train.epochs=1").out.partition("\n\n")[0]
    assert "1 epoch;" in before
    assert "prepare" in before
    assert user.stk("prepare", user.config).code == 0
    head = user.stk("plan", user.config, "train.epochs=1000").out.partition("\n\n")[0]
    of_epoch = steps_per_epoch(user.experiment())
    assert f"{1000 * of_epoch:,} steps: 1000 epochs of {of_epoch:,}" in head


def test_plan_of_data_without_training_samples_shows_no_share_of_an_epoch(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurm.commands.experiments.plan.steps_per_epoch", lambda experiment: 0)
    assert "5 steps\n" in user.stk("plan", user.config, "train.epochs=null", "train.steps=5").out


def test_a_plan_compares_with_the_last_run_of_its_name(user: User) -> None:
    last = create_run(user.experiment("seed=7"), user.experiments)
    append_json_line(last.attempts, {"attempt": 1, "time_start": 1.0, "step_s": 60.0})
    head = user.stk("plan", user.config, "train.epochs=null", "train.steps=600").out.partition("\n\n")[0]
    assert f"unlike {last.run_id}" in head
    assert "seed: 7 -> 0" in head
    assert "train.steps: null -> 600" in head
    assert "600 of them take about 10 h 00 min" in head
    assert f"as in {last.run_id}" in user.stk("plan", user.config, "seed=7").out


@pytest.mark.parametrize("section, key, is_written", [
    ("a: {b: 1}", "b", True), ("a: {b: 1}", "c", False),
    ("a: '${x}'", "b", True), ("a: {c: '${x}'}", "b", False),
])  # fmt: skip
def test_keys_that_come_from_a_reference_count_as_written(
    user: User, section: str, key: str, is_written: bool
) -> None:
    origins = compose(user.write("origins.yaml", f"x: {{b: 2}}\n{section}\n")).origins
    assert origins.is_written(("a", key)) == is_written


def test_plan_with_missing_data_is_shown_and_refused(user: User) -> None:
    assert user.stk("plan", user.config).err == ""
    (user.root / "reviews.tsv").unlink()
    answer = user.stk("plan", user.config)
    assert answer.code == 2
    assert "#!/bin/bash" in answer.out
    assert f"data.path: {user.root}/reviews.tsv does not exist" in answer.err


def line_of(config: Path, text: str) -> int:
    """The line of a file, counted from 1, that holds a text."""
    return next(
        number for number, line in enumerate(config.read_text().splitlines(), start=1) if text in line
    )


@pytest.mark.parametrize("command", ["plan", "submit"])
def test_all_errors_of_data_and_weights_are_shown_at_once_with_file_and_line(
    user: User, fake: FakeSlurm, command: str
) -> None:
    """A column that is missing, and weights from nowhere."""
    config = user.config
    missing = str(user.root / "no_such_run")
    said = user.refused(command, config, "data.text_column=texts", f"train.start_from_checkpoint={missing}")
    assert fake.jobs == []
    told = [line for line in said.splitlines() if line.startswith("  - ")]
    assert len(told) == 2
    assert any("train.start_from_checkpoint" in line and missing in line for line in told)
    place = f"tiny.yaml:{line_of(config, 'path:')}: data.path"
    assert any(place in line and "'texts'" in line for line in told)


@pytest.mark.parametrize("command", ["plan", "submit"])
def test_warnings_are_shown_with_file_and_line_and_stop_nothing(
    user: User, fake: FakeSlurm, command: str
) -> None:
    """Labels that look alike, and a warm-up that is longer than the run."""
    rows = [f"text {number}\t{('good', 'Good')[number % 2]}" for number in range(80)]
    user.write("reviews.tsv", "\n".join(["text\tlabel", *rows]) + "\n")
    assert user.stk("prepare", user.config).code == 0
    answer = user.stk(command, user.config, "lr_scheduler.warmup=5000")
    assert answer.code == 0
    assert len(fake.jobs) == (command == "submit")
    told = [line for line in answer.err.splitlines() if line.startswith("warning: ")]
    place = f"tiny.yaml:{line_of(user.config, 'path:')}: data.path"
    assert any(place in line and "'Good', 'good'" in line for line in told)
    assert any("command line: lr_scheduler.warmup" in line and "5,000 steps" in line for line in told)


@pytest.mark.slow
def test_errors_and_warnings_are_shown_in_one_message(user: User, fake: FakeSlurm) -> None:
    """More ranks than GPUs, weights of another model, and a warm-up that is longer than the run."""
    tokens = json.loads(user.stk("prepare", user.config, "--json").out)["vocabulary_size"]
    shapes = {"embedding.weight": (tokens, 5), "convolutions.0.bias": (3,), "labels": (2,)}
    weights = user.root / "model.safetensors"
    save_file({name: np.zeros(shape) for name, shape in shapes.items()}, weights)
    settings = ("resources.gres=gpu:1", "resources.tasks_per_node=2", "lr_scheduler.warmup=5000")
    answer = user.stk("submit", user.config, f"train.start_from_checkpoint={weights}", *settings)
    assert (answer.code, fake.jobs, user.runs) == (2, [], [])
    for key in ("resources.tasks_per_node", "train.start_from_checkpoint", "lr_scheduler.warmup"):
        assert f"command line: {key}" in answer.err
    told = (str(weights), f"embedding.weight [{tokens}, 5], expected [{tokens}, 4]", "labels [2]")
    assert all(part in answer.err for part in told)
