"""An experiment file that names a file with three functions."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.toolkit.workloads.custom.own_digits import DIGITS, EXPERIMENT, faults
from toolkit.config import load, load_resolved, to_yaml
from toolkit.config.identity import identity
from toolkit.config.json_schema import experiment_schema
from toolkit.config.schema import Experiment
from toolkit.config.serialize import to_plain
from toolkit.registry import metric_of, metrics_of, task_kinds
from toolkit.run.create_run import create_run
from toolkit.workload import Metric
from toolkit.workloads.custom.functions.samples import digest_of
from toolkit.workloads.custom.functions.task import FunctionsTask
from toolkit.workloads.custom.functions.user_code import lacks_predict, prediction_fault


def test_parameters_are_keys_with_their_types_and_defaults(config: Path) -> None:
    experiment = load(config, ["model.dropout=0"])
    assert experiment.model.arguments() == {"hidden": 32, "dropout": 0.0}
    assert experiment.data.values() == {"few": True}
    assert isinstance(experiment.model.dropout, float)


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


def test_a_metric_without_a_goal_is_refused(config: Path) -> None:
    (fault,) = faults(config, "evaluation.metric=accuracy")
    assert "accuracy:max" in fault


def test_a_misspelt_metric_is_named_with_the_faults_of_all_sections(config: Path) -> None:
    """Also those of a section that a function replaces, once each."""
    overrides = ["evaluation.metric=acuracy:max", "model.hiden=3", "lr_scheduler.kind=lineer"]
    metric, scheduler, model, optimizer = faults(config, *overrides, "optimizer.lrr=3")
    assert "evaluation.metric: " in metric
    assert "did you mean accuracy?" in metric
    assert "lr_scheduler.kind: " in scheduler
    assert "model.hiden: " in model
    assert "optimizer.lrr: " in optimizer
    (config.parent / "digits.py").write_text(DIGITS + "def optimizer(model, lr: float = 0.1):\n    pass\n")
    model, optimizer = faults(config, "model.hiden=3", "optimizer.lr=x")
    assert "model.hiden: " in model
    assert "optimizer.lr: " in optimizer


def test_python_file_may_declare_the_goal_of_a_metric(config: Path) -> None:
    (config.parent / "digits.py").write_text(DIGITS + 'metrics = {"accuracy": "max"}\n')
    experiment = load(config, ["evaluation.metric=accuracy"])
    assert experiment.evaluation.metric == "accuracy:max"
    assert [each.full_name for each in metrics_of(experiment.task, experiment.data)] == [
        "loss:min",
        "accuracy:max",
    ]
    assert "less" not in faults(config, "evaluation.metric=accuracy:min")[0]


def test_title_and_unit_come_from_the_file_or_the_experiment(config: Path) -> None:
    said = Metric(name="accuracy", goal="max", title="hits", unit="share")
    source = 'metrics = [Metric(name="accuracy", goal="max", title="hits")]\n'
    (config.parent / "digits.py").write_text(DIGITS + source)
    experiment = load(config, ["evaluation.metric=accuracy"])
    assert metric_of("accuracy", to_plain(experiment.task)) == said
    assert metrics_of(experiment.task, experiment.data)[-1] == said
    written = {"kind": "three_functions", "module": "digits.py", "titles": {"accuracy": "found"}}
    config.write_text(
        yaml.safe_dump({"name": "digits", "task": written, "evaluation": {"metric": "accuracy"}})
    )
    other = load(config, ["task.units.accuracy=number"])
    assert metric_of("accuracy", to_plain(other.task)) == replace(said, title="found", unit="number")
    assert identity(other) == identity(load(config))
    assert "share" in faults(config, "task.units.accuracy=percent")[0]


def test_metric_of_a_run_without_titles_and_units_is_a_number() -> None:
    stored = {"kind": "three_functions", "module": "digits.py", "metrics": {"accuracy": "max"}}
    assert metric_of("accuracy", stored) == Metric(name="accuracy", goal="max", unit="number")


def test_metric_is_accepted_if_step_cannot_be_read_from_its_text(config: Path) -> None:
    (config.parent / "digits.py").write_text(DIGITS.replace("    return {", "    return 0 or {"))
    assert load(config, ["evaluation.metric=f1:max"]).evaluation.metric == "f1:max"


def test_stored_experiment_is_read_without_the_python_file(config: Path, tmp_path: Path) -> None:
    experiment = load(config)
    (tmp_path / "config.yaml").write_text(to_yaml(experiment))
    (config.parent / "digits.py").unlink()
    stored = load_resolved(tmp_path / "config.yaml")
    assert stored == experiment
    assert identity(stored) == identity(experiment)
    assert to_yaml(stored) == to_yaml(experiment)


def test_a_folder_that_the_file_reads_beside_itself_is_named_in_a_warning(config: Path) -> None:
    code = config.with_name("digits.py")
    (config.parent / "rows").mkdir()
    code.write_text(f"{code.read_text()}\nROWS = Path(__file__).parent / 'rows' / 'train.csv'\n")
    experiment = load(config)
    (warning,) = task_kinds()[experiment.task.kind].file_warnings(experiment)
    assert "rows" in warning.problem


def test_goal_before_the_metric_is_one_fault(config: Path) -> None:
    (fault,) = faults(config, "evaluation.metric=max:accuracy")
    assert "did you mean accuracy:max?" in fault


def _warnings_with(config: Path, code: str, **resources: Any) -> list[str]:
    file = config.with_name("digits.py")
    file.write_text(f"{code}\n{file.read_text()}")
    experiment = load(config)
    experiment = replace(experiment, resources=replace(experiment.resources, **resources))
    found = task_kinds()[experiment.task.kind].file_warnings(experiment)
    return [f"{each.problem} ({each.hint})" for each in found]


@pytest.mark.parametrize(
    "code, named, hint",
    [
        ("import torhc", "digits.py:1 imports torhc", "torch"),
        ("import os, torhc.nn as nn", "digits.py:1 imports torhc", "torch"),
        ("\nfrom helpr import width", "digits.py:2 imports helpr", "helper"),
    ],
)
def test_import_of_a_missing_module_is_named_in_a_warning(
    config: Path, code: str, named: str, hint: str
) -> None:
    config.with_name("helper.py").touch()
    (warning,) = _warnings_with(config, code)
    assert named in warning
    assert f"did you mean {hint}?" in warning


def test_module_in_the_working_folder_only_is_named_in_a_warning(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beside.py").touch()
    monkeypatch.chdir(tmp_path)
    (warning,) = _warnings_with(config, "import beside")
    assert "digits.py:1 imports beside" in warning


@pytest.mark.parametrize("text", ["def f(:\n", "def model(): ...\n", None])
def test_file_that_is_broken_between_reading_and_checks_is_no_error(config: Path, text: str | None) -> None:
    experiment = load(config)
    code = config.with_name("digits.py")
    code.unlink() if text is None else code.write_text(text)
    assert [*task_kinds()[experiment.task.kind].file_warnings(experiment)] == []


@pytest.mark.parametrize(
    "code",
    [
        "import helper, os.path, numpy, toolkit.task, __future__",
        "from part.inner import thing",
        "try:\n    import torhc\nexcept ImportError:\n    torhc = None",
        "import sys\nsys.path.append('lib')\nimport torhc",
        "import sys as system\nsystem.path.append('lib')\nimport torhc",
        "from sys import path as folders\nfolders.append('lib')\nimport torhc",
        "import with_path, torhc",
        "def later():\n    import torhc",
    ],
)
def test_import_that_may_succeed_is_not_named(config: Path, code: str) -> None:
    config.with_name("helper.py").touch()
    config.with_name("with_path.py").write_text("import sys\nsys.path.append('lib')")
    config.with_name("part").mkdir()
    assert _warnings_with(config, code) == []


@pytest.mark.parametrize(
    "function, expected",
    [
        ("predict(batch, model, k=1)", "predict(model, batch)"),
        ("predict(threshold=0.5, batch=None)", "predict(model, batch)"),
        ("report(outputs, run)", "report(run, outputs)"),
        ("lengths(root='x', split='train')", "lengths(split)"),
    ],
)
def test_function_that_is_called_with_other_arguments_is_named_in_a_warning(
    config: Path, function: str, expected: str
) -> None:
    (warning,) = _warnings_with(config, f"def {function}: ...")
    assert f"digits.py:1: found {function.partition('(')[0]}(" in warning
    assert f"expected {expected}" in warning


def test_order_of_arguments_is_checked_for_new_experiments_only(config: Path, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(to_yaml(load(config)))
    code = config.with_name("digits.py")
    code.write_text(
        f"{code.read_text()}\n\ndef step(batch, model):\n    return {{'loss': 0, 'accuracy': 0}}\n"
    )
    (fault,) = faults(config)
    assert "expected step(model, batch)" in fault
    stored = load_resolved(tmp_path / "config.yaml")
    assert prediction_fault(stored, tmp_path) == lacks_predict(code)


@pytest.mark.parametrize("code", ["metrics = {'acuracy': 'max'}", "metrics = [Metric('acuracy', 'max')]"])
def test_declared_metric_that_step_does_not_return_is_named_in_a_warning(config: Path, code: str) -> None:
    (warning,) = _warnings_with(config, code)
    assert "found acuracy" in warning
    assert "did you mean accuracy?" in warning


@pytest.mark.parametrize("key", ["metrics.acuracy=max", "titles.acuracy=A", "units.acuracy=share"])
def test_key_of_a_metric_that_step_does_not_return_is_named_in_a_warning(config: Path, key: str) -> None:
    experiment = load(config, ["task={kind: three_functions, module: digits.py}", f"task.{key}"])
    (warning,) = task_kinds()[experiment.task.kind].file_warnings(experiment)
    assert warning.key == ("task", key.partition(".")[0], "acuracy")


@pytest.mark.parametrize(
    "given", ["metrics=max", "metrics=[f1]", "metrics=1", "titles=nonsense", "units=share"]
)
@pytest.mark.parametrize("metric", ["loss", "accuracy:max"])
def test_value_in_place_of_the_goals_titles_or_units_is_refused(
    config: Path, given: str, metric: str
) -> None:
    task = ["task={kind: three_functions, module: digits.py}", f"task.{given}"]
    (fault,) = faults(config, *task, f"evaluation.metric={metric}")
    assert f"task.{given.partition('=')[0]}: " in fault


def test_goals_of_metrics_that_are_known_at_run_time_only_are_not_named(config: Path) -> None:
    code = config.with_name("digits.py")
    code.write_text(code.read_text() + "\n\ndef step(model, batch):\n    return made(model, batch)\n")
    assert _warnings_with(config, "metrics = {'acuracy': 'max'}") == []


@pytest.mark.parametrize("resources", [{"setup": ("module load x",)}, {"environment": {"PYTHONPATH": "/x"}}])
def test_missing_module_is_not_named_if_the_job_has_another_environment(
    config: Path, resources: dict[str, Any]
) -> None:
    assert _warnings_with(config, "import torhc", **resources) == []


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
