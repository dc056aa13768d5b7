"""A tree becomes a typed experiment, or one message with every fault of it."""

from __future__ import annotations

import math
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from slurm.config.resources import Group
from tests.toolkit.config.trees import GOOD, put
from toolkit.config import check, load
from toolkit.config.checking.limits import located
from toolkit.config.checking.validate import policy_in
from toolkit.config.composition.interpolation import Resolved
from toolkit.config.fields import Limits
from toolkit.errors import ConfigError
from toolkit.registry import task_kinds
from toolkit.workload import OwnSections


def test_a_good_file_becomes_an_experiment_with_defaults(movies):
    experiment = load(movies, ["resources.groups=[{nodes: 1, gpus: 2}]", "resources.tasks_per_node=1"])
    assert experiment.name == "movies"
    assert experiment.model.embedding_dim == 64
    assert experiment.model.filters == 100
    assert experiment.resources.groups == (Group(nodes=1, gpus=2),)
    assert experiment.optimizer.betas == (0.9, 0.999)


def test_file_paths_become_absolute_and_so_do_default_paths(movies):
    experiment = load(movies)
    assert experiment.data.path == str(Path.cwd() / "data/movie_reviews.tsv")
    assert experiment.data.prepared_dir == str(Path.cwd() / "data/prepared")
    assert experiment.data.train is None


def test_a_tilde_in_a_file_or_model_path_is_expanded(tree, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert check(put(tree, "data.path", "~/a.tsv")).data.path == str(tmp_path / "a.tsv")
    assert located("~/models/bert", Limits(hub=True)) == str(tmp_path / "models" / "bert")
    assert located("google/bert", Limits(hub=True)) == "google/bert"


@pytest.mark.parametrize(
    "key, value, expected",
    [
        ("train.epochs", 3.0, 3),
        ("train.epochs", Resolved(" 6 "), 6),
        ("train.epochs", Resolved("1e3"), 1000),
        ("optimizer.lr", 1, 1.0),
        ("optimizer.lr", Resolved("1e-4"), 0.0001),
        ("optimizer.momentum", -0.0, 0.0),
        ("train.deterministic", Resolved("False"), False),
        ("train.clip_norm", Resolved("null"), None),
        ("train.clip_norm", None, None),
        ("train.clip_norm", Resolved("2"), 2.0),
        ("name", 17, "17"),
        ("resources.time", 60, "60"),
        ("resources.comment", "null", "null"),
        ("resources.comment", None, None),
        ("model.kernels", Resolved("[2, 3]"), (2, 3)),
        ("model.kernels", [Resolved("2"), 3.0], (2, 3)),
        ("model.hidden", [], ()),
        ("optimizer.betas", [0, Resolved("0.5")], (0.0, 0.5)),
        ("data.labels", ["no", 1], ("no", "1")),
        ("data.splits", {"train": 8, "validation": Resolved("2")}, {"train": 8.0, "validation": 2.0}),
        ("resources.environment", {"A": 1, "B": "x\ny"}, {"A": "1", "B": "x\ny"}),
        ("resources.sbatch", {"wckey": "a", "hold": True}, {"wckey": "a", "hold": True}),
    ],
)  # fmt: skip
def test_a_value_is_converted_to_the_type_of_its_key(tree, key, value, expected):
    found = attrgetter(key)(check(put(tree, key, value)))
    assert repr(found) == repr(expected)


@pytest.mark.parametrize(
    "overrides, key, expected",
    [
        (["optimizer.no_decay.0=foo"], "optimizer.no_decay", ("foo", "norm")),
        (["optimizer.no_decay.1=foo"], "optimizer.no_decay", ("bias", "foo")),
        (["optimizer.no_decay.2=foo"], "optimizer.no_decay", ("bias", "norm", "foo")),
        (
            ["optimizer.no_decay.3=b", "optimizer.no_decay.2=a"],
            "optimizer.no_decay",
            ("bias", "norm", "a", "b"),
        ),
        (["optimizer.betas.1=0.99"], "optimizer.betas", (0.9, 0.99)),
        (["optimizer=null", "optimizer.no_decay.0=foo"], "optimizer.no_decay", ("foo", "norm")),
        (["optimizer.no_decay.0=x", "optimizer.no_decay=[y]"], "optimizer.no_decay", ("y",)),
        (["optimizer.no_decay=[]", "optimizer.no_decay.0=x"], "optimizer.no_decay", ("x",)),
        (["model.kernels.1=5"], "model.kernels", (3, 5)),
        (["data.labels.0=a", "data.labels.1=b"], "data.labels", ("a", "b")),
        (
            ["optimizer.kind=adafactor", "optimizer.arguments.eps.0=0.1", "optimizer.arguments.eps.1=0.2"],
            "optimizer.arguments",
            {"eps": [0.1, 0.2]},
        ),
        (
            [
                "resources.tasks_per_node=1",
                "resources.groups.0.nodes=2",
                "resources.groups.1.nodes=1",
                "resources.groups.0.gpus=1",
                "resources.groups.1.gpus=2",
            ],
            "resources.groups",
            (Group(nodes=2, gpus=1), Group(nodes=1, gpus=2)),
        ),
    ],
)
def test_overrides_of_entries_change_the_default_list_or_create_one(movies, overrides, key, expected):
    assert attrgetter(key)(load(movies, overrides)) == expected


@pytest.mark.parametrize(
    "override, length",
    [
        ("optimizer.no_decay.3=x", 2),
        ("optimizer.no_decay.99999999999=x", 2),
        ("optimizer.betas.first=0", 2),
        ("data.labels.1=x", 0),
    ],
)
def test_an_index_beyond_the_end_of_the_default_is_refused(movies, faults, override, length):
    (fault,) = faults(load, movies, [override])
    assert (fault.key, fault.origin) == (override.partition("=")[0], "command line")
    assert f"from 0 to {length}" in fault.problem


@pytest.mark.parametrize(
    "makes, override, betas",
    [((), "betas.1=0.9", (0.9, 0.9)), (("optimizer",), "betas=[0.8,0.9]", (0.8, 0.9))],
)
def test_code_that_gives_the_sections_gets_plain_ones_and_may_copy_them(
    movies, monkeypatch, makes, override, betas
):
    def own_sections(tree, folders):
        copy = yaml.safe_load(yaml.safe_dump(tree))
        return OwnSections(tree={"data": copy["data"]}, data=row.data, models=row.models)

    row = replace(task_kinds()["toy_texts"], makes=makes, own_sections=own_sections)
    monkeypatch.setattr("toolkit.config.checking.validate.task_kinds", lambda: {row.kind: row})
    experiment = load(movies, ["data.path=a.tsv", "data.labels.0=yes", f"optimizer.{override}"])
    assert experiment.data.labels == ("yes",)
    assert experiment.optimizer.betas == betas


@pytest.mark.parametrize(
    "shares, rest",
    [
        ({"train": 0.8, "validation": 0.1, "test": None}, 0.1),
        ({"train": 0.7, "validation": 0.2, "test": Resolved("null")}, 0.1),
        ({"train": 0.7, "validation": 0.3, "test": None}, 0.0),
    ],
)
def test_a_null_share_becomes_one_minus_the_other_shares(tree, shares, rest):
    experiment = check(put(tree, "data.splits", shares))
    assert experiment.data.splits == {**shares, "test": rest}


@pytest.mark.parametrize(
    "shares, problem",
    [
        ({"train": 0.8, "validation": 0.3, "test": None}, "the others add up to 1.1"),
        ({"train": 0.8, "validation": None, "test": None}, "found null here and for validation"),
    ],
)
def test_a_null_share_is_refused_beside_another_null_or_without_a_rest(tree, faults, shares, problem):
    (fault,) = faults(check, put(tree, "data.splits", shares))
    assert fault.key == "data.splits.test"
    assert problem in fault.problem


def test_an_empty_section_means_its_defaults(tree):
    assert check(put(tree, "train", None)) == check(tree)


@pytest.mark.parametrize(
    "key, value, problem",
    [
        ("train.epochs", "ten", "found 'ten' (text), expected a whole number from 1 to 1000000"),
        ("train.epochs", 0, "found 0 (a whole number), expected a whole number from 1 to 1000000"),
        ("train.epochs", 1.5, "found 1.5 (a number), expected a whole number from 1 to 1000000"),
        ("train.epochs", True, "found true (a truth value), expected a whole number from 1 to 1000000"),
        ("train.epochs", Resolved("true"), "found 'true' (text), expected a whole number from 1 to 1000000"),
        ("train.accumulation", None, "found null, expected a whole number of at least 1"),
        ("train.epochs", [1], "found [1] (a list), expected a whole number from 1 to 1000000"),
        ("train.epochs", {}, "found a mapping, expected a whole number from 1 to 1000000"),
        ("train.epochs", math.inf, "found inf (a number), expected a whole number from 1 to 1000000"),
        (
            "train.logical_ranks",
            65537,
            "found 65537 (a whole number), expected a whole number from 1 to 65536",
        ),
        ("optimizer.lr", 0, "found 0 (a whole number), expected a number above 0"),
        ("optimizer.lr", math.nan, "found nan (a number), expected a number above 0"),
        ("optimizer.lr", True, "found true (a truth value), expected a number above 0"),
        ("lr_scheduler.gamma", 2, "found 2 (a whole number), expected a number above 0 of at most 1"),
        ("train.clip_norm", "x", "found 'x' (text), expected a number above 0, or null"),
        ("train.deterministic", 1, "found 1 (a whole number), expected true or false"),
        ("train.deterministic", "no", "found 'no' (text), expected true or false"),
        ("name", False, "found false (a truth value), expected text of the form "),
        ("name", 1.5, "found 1.5 (a number), expected text of the form "),
        ("name", "a\n", "found 'a\\n' (text), expected text of the form "),
        ("data.path", "", "found '' (text), expected the name of a file or folder, or null"),
        ("train.precision", "half", "found 'half' (text), expected one of auto, fp32, tf32, bf16, fp16"),
        ("model.kernels", 3, "found 3 (a whole number), expected a list of whole numbers"),
        ("model.kernels", "3 4", "found '3 4' (text), expected a list of whole numbers"),
        ("optimizer.betas", [0.9], "found [0.9] (a list), expected a list of 2 numbers"),
        ("optimizer.betas", [1, 2, 3], "found [1, 2, 3] (a list), expected a list of 2 numbers"),
        ("data.splits", [1], "found [1] (a list), expected a mapping of names to numbers"),
        ("resources.environment", "A=1", "found 'A=1' (text), expected a mapping of names to texts"),
        ("resources.groups", {"nodes": 1}, "found a mapping, expected a list of sections"),
        ("train", 3, "found 3 (a whole number), expected a section (a mapping)"),
        ("resources.comment", "a\0b", "found 'a\\x00b' (text), which holds a NUL character"),
        ("resources.comment", "a\udcffb", "found 'a\\udcffb' (text), which is not valid Unicode text"),
    ],
)
def test_a_wrong_value_is_reported_with_its_type_and_the_allowed_values(tree, faults, key, value, problem):
    (fault,) = faults(check, put(tree, key, value))
    assert fault.key == key
    assert fault.problem.startswith(problem)


@pytest.mark.parametrize(
    "key, value, where",
    [
        ("model.kernels", [3, "x", None], ["model.kernels.1", "model.kernels.2"]),
        ("data.splits", {"train": "x"}, ["data.splits.train"]),
        ("resources.environment", {"A": None, "B": "\0"}, [
            "resources.environment.A", "resources.environment.B",
        ]),
        ("resources.environment", {"A\0": "x"}, ["resources.environment.'A\\x00'"]),
        ("resources.sbatch", {"a": {"b": [1, math.nan]}}, ["resources.sbatch.a.b.1"]),
        ("resources.groups", [{"nodes": 1, "gpus": -1}, {"gpus": 1}, 3], [
            "resources.groups.0.gpus", "resources.groups.1.nodes", "resources.groups.2",
        ]),
    ],
)  # fmt: skip
def test_a_fault_within_a_list_or_mapping_names_the_item(tree, faults, key, value, where):
    assert [fault.key for fault in faults(check, put(tree, key, value))] == where


def test_missing_mandatory_keys_are_reported(faults):
    found = faults(check, {"task": {"kind": "toy_texts"}})
    assert [fault.key for fault in found] == ["data", "model", "name"]
    assert all("is missing" in fault.problem for fault in found)


def test_without_a_task_the_sections_that_it_may_need_are_not_called_missing(faults):
    found = faults(check, {})
    assert [fault.key for fault in found] == ["name", "task"]
    assert "toy_texts" in found[-1].problem


@pytest.mark.parametrize("kind", ["nope", "own"])
@pytest.mark.parametrize("section", ["optimizer", "lr_scheduler"])
def test_a_section_of_kind_own_has_no_further_fault_if_the_kind_of_task_is_unknown(
    tree, faults, kind, section
):
    tree = put(put(tree, section, {"kind": "own"}), "train.epochs", 0)
    found = faults(check, put(tree, "task", {"kind": kind}))
    assert [fault.key for fault in found] == ["task.kind", "train.epochs"]


def test_a_misspelt_section_of_kind_own_is_named_beside_an_unknown_kind_of_task(tree, faults):
    tree = put(tree, "optimiser", {"kind": "own", "lr": 1})
    found = faults(check, put(tree, "task.kind", "nope"))
    assert [fault.key for fault in found] == ["optimiser", "task.kind"]
    assert found[0].hint == "did you mean optimizer?"


@pytest.mark.parametrize("kind", ["nope", 3, None, True, ["docnn"]])
def test_an_unknown_kind_is_the_only_fault_of_its_section_and_lists_the_kinds(tree, faults, kind):
    (fault,) = faults(check, put(put(tree, "model.kind", kind), "model.filters", "x"))
    assert fault.key == "model.kind"
    assert "expected one of convolutions" in fault.problem


@pytest.mark.parametrize("section", ["task", "model"])
def test_a_section_without_its_kind_is_refused(tree, faults, section):
    (fault,) = faults(check, put(tree, section, {}))
    assert fault.key == f"{section}.kind"
    assert "is missing, expected one of" in fault.problem


@pytest.mark.parametrize("section", ["task", "model"])
@pytest.mark.parametrize("value", [None, "docnn", ["docnn"]])
def test_a_value_in_place_of_a_section_is_one_fault(tree, faults, section, value):
    (fault,) = faults(check, put(tree, section, value))
    assert fault.key == section
    assert "expected a section with the key kind" in fault.problem


def test_all_faults_are_in_one_message_sorted_by_place_and_key(movies, write):
    write("configs/model/docnn.yaml", "kind: convolutions\nkernels: ${oc.env:UNSET}\nfiltres: 3\n")
    write(
        "configs/movies.yaml",
        "name: my movies\n"
        "task: {kind: toy_texts}\n"
        "model: ${from_file:model/docnn.yaml}\n"
        "data: {path: a.tsv, train: b.tsv}\n"
        "train: {epochs: 0}\n"
        "checkpoint: ${from_file:nowhere.yaml}\n"
        "train: {}\n",
    )
    with pytest.raises(ConfigError) as caught:
        load(movies, ["nonsense", "resources.tasks_per_node=99", "optimizer.lr=x"])
    places = [(fault.origin, fault.key) for fault in caught.value.faults]
    assert places == [
        ("command line", ""),
        ("command line", "optimizer.lr"),
        ("command line", "resources.tasks_per_node"),
        ("configs/model/docnn.yaml:2", "model.kernels"),
        ("configs/model/docnn.yaml:3", "model.filtres"),
        ("configs/movies.yaml:1", "name"),
        ("configs/movies.yaml:4", "data"),
        ("configs/movies.yaml:5", "train.epochs"),
        ("configs/movies.yaml:6", "checkpoint"),
        ("configs/movies.yaml:7", "train"),
    ]
    message = str(caught.value)
    assert message.startswith("The experiment has 10 faults:\n")
    assert len(message.splitlines()) == 11
    assert (
        "  - configs/model/docnn.yaml:3: model.filtres: there is no such key (did you mean filters?)"
        in message
    )


def test_a_missing_key_is_reported_at_its_section(movies, write, faults):
    write("configs/movies.yaml", movies.read_text() + "train:\n  epochs: 1\n")
    (fault,) = faults(load, movies, ["resources={groups: [{nodes: 1}]}"])
    assert (fault.key, fault.origin) == ("resources.groups.0.gpus", "command line")
    movies.write_text(movies.read_text().replace("name: movies\n", ""))
    (fault,) = faults(load, movies)
    assert (fault.key, fault.origin) == ("name", "configs/movies.yaml")


@pytest.mark.parametrize(
    "key, value",
    [
        ("train.epochs", "6"), ("optimizer.lr", "1e-3"), ("train.deterministic", "true"),
        ("train.clip_norm", "2"), ("train.clip_norm", "null"), ("model.kernels", "[2]"),
        ("model.kernels", ["2"]), ("data.splits", {"train": "8"}), ("resources.hosts", {"a": "4"}),
    ],
)  # fmt: skip
def test_a_text_is_refused_where_a_number_belongs(tree, faults, key, value):
    (fault, *_) = faults(check, put(tree, key, value))
    assert fault.key.startswith(key)
    assert "(text)" in fault.problem


@pytest.mark.parametrize("key, value, most", [
    ("train.epochs", 10**20, "1000000"), ("train.batch_size", 10**20, "2147483647"),
    ("resources.nodes", 2**31, "2147483647"), ("model.filters", 10**15, "2147483647"),
    ("train.rendezvous_timeout_s", 1e300, "31536000"), ("resources.hosts", {"a": 10**10}, "2147483647"),
])  # fmt: skip
def test_a_number_above_the_maximum_is_refused_with_the_maximum(tree, faults, key, value, most):
    (fault,) = faults(check, put(tree, key, value))
    assert fault.key.startswith(key)
    assert most in fault.problem


def test_environment_variables_are_converted_to_the_type_of_their_key(movies, monkeypatch):
    monkeypatch.setenv("FIRST", "6")
    monkeypatch.setenv("SECOND", "null")
    expected = {
        "train.epochs=${oc.env:FIRST}": 6,
        "optimizer.lr=${oc.env:FIRST}e-3": 0.006,
        "resources.comment=${oc.env:SECOND}": None,
        "resources.partition=${oc.env:UNSET,null}": None,
        "model.kernels=${oc.env:UNSET,[2,3]}": (2, 3),
    }
    experiment = load(movies, list(expected))
    for override, value in expected.items():
        assert attrgetter(override.partition("=")[0])(experiment) == value


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_KEYS = ["name", "task", "model", "data", "seed", "train", "optimizer", "evaluation", "resources"]
_INNER = [
    "kind", "path", "splits", "delimiter", "logical_ranks", "betas", "metric", "groups", "sbatch", "time",
]  # fmt: skip


@given(
    st.dictionaries(
        st.sampled_from(_KEYS), st.dictionaries(st.sampled_from(_INNER), _ANY, max_size=4) | _ANY, max_size=5
    )
)
def test_any_tree_gives_an_experiment_or_a_config_error(overrides):
    try:
        check(GOOD | overrides)
    except ConfigError as error:
        assert error.faults  # noqa: PT017 (either outcome is right)


def test_a_misspelt_key_of_stored_resources_leaves_the_others_as_they_are() -> None:
    assert policy_in({"max_crashs": 5, "max_timeouts": 3}).max_timeouts == 3
