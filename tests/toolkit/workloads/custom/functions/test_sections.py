"""An experiment file that names a file with three functions."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from slurm.cli import main
from tests.toolkit.workloads.custom.own_digits import DIGITS, EXPERIMENT, faults
from toolkit.config import load, load_resolved, to_yaml
from toolkit.config.identity import identity
from toolkit.config.json_schema import experiment_schema
from toolkit.config.schema import Experiment
from toolkit.run.create_run import create_run
from toolkit.workloads.custom.functions.samples import digest_of
from toolkit.workloads.custom.functions.task import FunctionsTask


def test_parameters_are_keys_with_their_types_and_defaults(config: Path) -> None:
    experiment = load(config, ["model.dropout=0"])
    assert experiment.model.arguments() == {"hidden": 32, "dropout": 0.0}
    assert experiment.data.values() == {"few": True}
    assert isinstance(experiment.model.dropout, float)


def test_plan_does_not_advise_to_prepare_samples_that_the_run_makes(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", str(config), "train.epochs=3"]) == 0
    head = capsys.readouterr().out.partition("\n\n")[0]
    assert ("3 epochs" in head, "stk prepare" in head) == (True, False)


def test_relative_paths_refer_to_the_working_folder_of_the_command(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job has another working folder."""
    code = "def data(split):\n    return [(float(x), 0) for x in open('rows.txt')]\n"
    code += (
        "def version():\n    pass\ndef model():\n    pass\ndef step(model, batch):\n    return {'loss': 0}\n"
    )
    (config.parent / "rows.py").write_text(code)
    (tmp_path / "rows.txt").write_text("1\n2\n")
    config.write_text("name: rows\ntask: rows.py\n")
    run = create_run(load(config), tmp_path / "experiments")
    monkeypatch.chdir(run.path)
    task = FunctionsTask(load_resolved(run.config))
    assert len(task.splits["train"]) == 2
    monkeypatch.chdir(run.path)
    # A function of that name is another object in each process, and no version of the data.
    assert FunctionsTask(load_resolved(run.config)).fingerprint == task.fingerprint


def test_fingerprint_of_the_data_has_all_values_but_for_a_secret_its_reference(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A renewed token does not make other data. A fingerprint that changes refuses all checkpoints."""
    (config.parent / "digits.py").write_text(DIGITS.replace("few: bool", "token: str, few: bool"))

    def fingerprint(token: str, value: str) -> str:
        monkeypatch.setenv("HF_TOKEN", value)
        task = FunctionsTask(load(config, [f"data.token={token}"]))
        splits = {name: digest_of(split) for name, split in task.splits.items()}
        facts = {"data": {"few": True, "token": token}, "version": "None", "splits": splits}
        assert task.fingerprint == hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
        return task.fingerprint

    reference = "${oc.env:HF_TOKEN}"
    assert fingerprint(reference, "of today") == fingerprint(reference, "of tomorrow")
    assert fingerprint("one", "") != fingerprint("other", "")


@pytest.mark.parametrize("override", ["model.hiden=3", "model.hidden=many", "data.few=7", "data.rest=1"])
def test_a_wrong_key_or_value_is_refused(config: Path, override: str) -> None:
    (fault,) = faults(config, override)
    assert override.partition("=")[0] in fault


def test_a_parameter_without_a_default_must_be_given(config: Path) -> None:
    (config.parent / "digits.py").write_text(DIGITS.replace("few: bool = False", "few: bool, root: str"))
    (fault,) = faults(config)
    assert "data.root" in fault
    assert load(config, ["data.root=here"]).data.root == "here"


def test_a_file_is_found_beside_the_experiment_or_in_the_working_folder(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = load(config)
    assert beside.task.module == str(config.parent / "digits.py")
    (config.parent / "inner").mkdir()
    moved = config.rename(config.parent / "inner" / "digits.yaml")
    (fault,) = faults(moved)
    assert "no file digits.py" in fault
    monkeypatch.chdir(config.parent)
    assert load(moved).task.module == beside.task.module


def test_neither_the_working_folder_nor_the_name_of_the_file_changes_the_identity(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {identity(load(config))}
    (config.parent / "inner").mkdir()
    monkeypatch.chdir(config.parent / "inner")
    for name in (str(config), "../digits.yaml", "../inner/../digits.yaml"):
        found.add(identity(load(Path(name))))
    assert len(found) == 1


def test_a_folder_above_a_link_is_not_that_above_its_name(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (config.parent / "inner").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link").symlink_to(config.parent / "inner")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert Path(load(Path("link/../digits.yaml")).task.module).samefile(config.parent / "digits.py")


def test_module_beside_an_experiment_that_is_submitted_from_another_folder_is_kept(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text(EXPERIMENT.replace("digits.py", "my_project.digits"))
    (config.parent / "my_project/digits.py").write_text(DIGITS)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    experiment = load(config)
    assert experiment.task.folder == str(elsewhere)
    run = create_run(experiment, tmp_path / "runs")
    assert (run.code / "project/my_project/digits.py").read_text() == DIGITS


def test_module_that_is_not_in_the_named_folder_is_kept_from_where_it_is(
    config: Path, tmp_path: Path
) -> None:
    (config.parent / "my_project/digits.py").write_text(DIGITS)
    task = "task={kind: three_functions, module: my_project.digits, module_folder: %s}"
    run = create_run(load(config, [task % (tmp_path / "gone")]), tmp_path / "runs")
    assert (run.code / "project/my_project/digits.py").read_text() == DIGITS
    (fault,) = faults(config, task % 3)
    assert "task.module_folder" in fault


@pytest.mark.parametrize(
    "name, before", [("kind", "def model("), ("prepare", "def data(split: str, ")], ids=["model", "data"]
)
def test_parameter_with_a_reserved_name_is_refused(config: Path, name: str, before: str) -> None:
    (config.parent / "digits.py").write_text(DIGITS.replace(before, f"{before}{name}=0, "))
    (fault,) = faults(config)
    assert name in fault


def test_what_stands_for_prepared_data_names_the_file_that_makes_the_samples(
    config: Path, tmp_path: Path
) -> None:
    experiment = load(config)
    made = experiment.data.prepare(lambda *_: None)
    assert made.to_json() == {"path": str(config.parent / "digits.py")}
    assert str(made.path) in made.summary()
    stored = load_resolved(create_run(experiment, tmp_path / "experiments").config)
    assert stored.data.prepare(lambda *_: None).path.name == "digits.py"
    assert stored == experiment


@pytest.mark.parametrize("name", ["_file", "file", "path"])
def test_a_parameter_of_data_may_have_the_name_of_a_file(config: Path, tmp_path: Path, name: str) -> None:
    (config.parent / "digits.py").write_text(DIGITS.replace("few: bool", f"{name}: str, few: bool"))
    experiment = load(config, [f"data.{name}=a.csv"])
    stored = load_resolved(create_run(experiment, tmp_path / "experiments").config)
    for each in (experiment, stored):
        assert getattr(each.data, name) == "a.csv"
        assert each.data.prepare(lambda *_: None).path.name == "digits.py"


def test_stored_experiment_is_read_without_the_python_file(config: Path, tmp_path: Path) -> None:
    experiment = load(config)
    (tmp_path / "config.yaml").write_text(to_yaml(experiment))
    (config.parent / "digits.py").unlink()
    stored = load_resolved(tmp_path / "config.yaml")
    assert stored == experiment
    assert identity(stored) == identity(experiment)
    assert to_yaml(stored) == to_yaml(experiment)


def test_an_experiment_can_be_copied_and_pickled(config: Path) -> None:
    experiment = load(config)
    assert copy.deepcopy(experiment) == experiment
    assert pickle.loads(pickle.dumps(experiment)) == experiment


def test_path_becomes_absolute_and_a_list_stays_a_list(config: Path, tmp_path: Path) -> None:
    more = "few: bool = False, root: Path = 'data', sizes: list[int] = [1, 2]"
    (config.parent / "digits.py").write_text(DIGITS.replace("few: bool = False", more))
    assert load(config).data.values() == {"few": True, "root": str(tmp_path / "data"), "sizes": [1, 2]}


def validity(*files: Path) -> Callable[[Any], bool]:
    """Return what tells whether an experiment is valid by the schema."""
    schema = json.loads(json.dumps(experiment_schema({}, files)))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema).is_valid


def test_schema_accepts_an_experiment_with_three_functions(config: Path) -> None:
    valid, experiment = validity(), yaml.safe_load(EXPERIMENT)
    assert valid(experiment)
    assert valid({"name": "digits", "task": "digits.py"})
    assert valid({**experiment, "task": {"kind": "three_functions", "module": "digits.py"}})
    assert not valid({**experiment, "task": {"kind": "three_functions", "modul": "digits.py"}})


def test_schema_of_an_experiment_has_the_parameters_of_its_functions(config: Path) -> None:
    valid, experiment = validity(config), yaml.safe_load(EXPERIMENT)
    assert valid(experiment)
    assert valid({**experiment, "model": {"hidden": 4}, "data": {"few": True}})
    assert not valid({**experiment, "model": {"hiden": 4}})
    assert not valid({**experiment, "model": {"hidden": "wide"}})
    assert not valid({**experiment, "data": {"fwe": True}})
    assert valid({**experiment, "task": "other.py", "model": {"hiden": 4}})
    # Headings with nothing under them.
    assert valid({**experiment, "model": None, "data": None})


def test_tab_completes_the_parameters_of_the_functions(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "--candidates", "run", str(config), "model."]) == 0
    assert capsys.readouterr().out.split() == ["model.dropout=", "model.hidden=", "model.kind="]


def test_schema_has_the_parameters_if_task_is_a_section(config: Path) -> None:
    experiment = yaml.safe_load(EXPERIMENT)
    experiment["task"] = {"kind": "three_functions", "module": "digits.py"}
    config.write_text(json.dumps(experiment))
    valid = validity(config)
    assert valid({**experiment, "model": {"hidden": 4}})
    assert not valid({**experiment, "model": {"hiden": 4}})


def test_experiments_are_equal_only_with_equal_values(config: Path) -> None:
    runs: list[Experiment] = [load(config, [f"model.hidden={number}"]) for number in (1, 2, 1)]
    assert runs[0] == runs[2] != runs[1]
    assert identity(runs[0]) == identity(runs[2]) != identity(runs[1])
    assert len(set(map(hash, (run.model for run in runs)))) == 2
