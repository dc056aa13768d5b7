"""The section `sweep` of an experiment file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.support.tiny import write_experiment
from toolkit.config import load, run_id
from toolkit.config.composition.yaml_files import parse
from toolkit.errors import ConfigError
from toolkit.sweeps.section import load_sweep
from toolkit.sweeps.spaces import Choice, LogUniform, RandInt, Uniform, Values
from toolkit.sweeps.sweep import Sweep

SECTION = """
sweep:
  name: lrs
  method: random
  samples: 5
  seed: 3
  seeds: [1, 2]
  max_parallel: 4
  metric: validation.accuracy
  goal: max
  parameters:
    optimizer.lr: {loguniform: [1.0e-5, 1e-2]}
    optimizer: {weight_decay: [0, 0.1], kind: adamw}
    train.epochs: {randint: [1, 3]}
    model.dropout: {uniform: [0, 0.5]}
    model.kernels: {choice: [[2], [2, 3]]}
    task: ["${from_file:task.yaml}", {kind: other}]
"""


def written(folder: Path, section: str) -> Path:
    path = write_experiment(folder)
    path.write_text(path.read_text() + section)
    return path


def test_every_key_of_the_section_is_read(tmp_path: Path) -> None:
    assert load_sweep(written(tmp_path, SECTION)) == Sweep(
        name="lrs",
        method="random",
        samples=5,
        seed=3,
        seeds=("1", "2"),
        max_parallel=4,
        metric="validation.accuracy",
        goal="max",
        fixed={"optimizer.kind": "adamw"},
        parameters={
            "optimizer.lr": LogUniform(1e-5, 1e-2),
            "optimizer.weight_decay": Values(("0", "0.1")),
            "train.epochs": RandInt(1, 3),
            "model.dropout": Uniform(0, 0.5),
            "model.kernels": Choice(("[2]", "[2, 3]")),
            "task": Values(("${from_file:task.yaml}", '{"kind": "other"}')),
        },
    )


def test_the_command_line_sets_keys_of_the_section(tmp_path: Path) -> None:
    sweep = load_sweep(
        written(tmp_path, SECTION), ["sweep.samples=9", "sweep.parameters.optimizer.lr=[1, 2]"]
    )
    assert sweep.samples == 9
    assert sweep.parameters["optimizer.lr"] == Values(("1", "2"))


def test_the_section_may_be_an_included_file(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("parameters: {seed: [1, 2]}\n")
    sweep = load_sweep(written(tmp_path, "sweep: ${from_file:mine.yaml}\n"))
    assert sweep == Sweep(parameters={"seed": Values(("1", "2"))})


def test_sections_within_a_run_are_keys_with_dots(tmp_path: Path) -> None:
    section = "sweep: {runs: [{optimizer: {lr: 0.1}, task: {a: {b: [1]}, c: {}}}]}\n"
    sweep = load_sweep(written(tmp_path, section))
    assert sweep.runs == ({"optimizer.lr": "0.1", "task.a.b": "[1]", "task.c": "{}"},)


def test_section_of_a_run_that_names_its_kind_is_replaced(tmp_path: Path) -> None:
    """The keys of another kind would not fit."""
    sweep = load_sweep(written(tmp_path, "sweep: {runs: [{model: {kind: docnn, filters: 3}}]}\n"))
    (run,) = sweep.runs
    assert parse(run["model"]).value == {"kind": "docnn", "filters": 3}


@pytest.mark.parametrize("section", [
    "{runs: [{seed: !!timestamp 2020-01-01}]}",
    "{parameters: {seed: [!!binary aGk=, 2]}}",
    "{parameters: {seed: {uniform: [!foo 1, 2]}}}",
])  # fmt: skip
def test_a_tag_is_a_fault_of_the_file(tmp_path: Path, section: str) -> None:
    with pytest.raises(ConfigError, match="tag"):
        load_sweep(written(tmp_path, f"sweep: {section}\n"))


def test_all_faults_are_reported_with_their_lines(tmp_path: Path) -> None:
    text = (
        "sweep:\n  methd: grid\n  samples: -1\n  goal: more\n  zip: 3\n  runs: [4]\n  name: a/b\n"
        "  parameters:\n    a: {loguniform: [0, 1]}\n    b: []\n    c: {randint: 3}\n"
    )
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_sweep(path)
    faults = {fault.key: fault for fault in caught.value.faults}
    assert list(faults) == [
        "sweep.methd", "sweep.samples", "sweep.goal", "sweep.zip", "sweep.runs.0", "sweep.name",
        "sweep.parameters.a.loguniform", "sweep.parameters.b", "sweep.parameters.c.randint",
    ]  # fmt: skip
    assert faults["sweep.methd"].hint == "did you mean method?"
    line = path.read_text().splitlines().index("  samples: -1") + 1
    assert faults["sweep.samples"].origin.endswith(f":{line}")


def test_loading_one_run_from_a_sweep_file_is_refused_with_the_alternatives(tmp_path: Path) -> None:
    path = written(tmp_path, SECTION)
    with pytest.raises(ConfigError, match=r"`stk sweep` makes them; sweep=null leaves it out"):
        load(path)
    alone = load(path, ["sweep=null"])
    assert run_id(alone) == run_id(load(write_experiment(tmp_path)))


def test_a_file_without_the_section_has_no_sweep(tmp_path: Path) -> None:
    assert load_sweep(write_experiment(tmp_path)) is None
