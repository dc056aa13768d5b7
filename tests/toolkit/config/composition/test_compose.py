"""Includes, references and overrides become one tree, and every key knows where it was written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.toolkit.config.composing import compose
from toolkit.config import load
from toolkit.config.composition.yaml_files import dump
from toolkit.errors import ConfigError


def test_an_include_stands_for_the_contents_of_its_file(movies):
    assert compose(movies).tree["model"] == {"kind": "convolutions", "embedding_dim": 64, "kernels": [3, 4]}


def test_every_key_knows_its_file_and_line(movies):
    origins = compose(movies, ["train.epochs=3"]).origins
    assert str(origins.of(("data", "path"))) == "configs/movies.yaml:4"
    assert str(origins.of(("model", "kernels"))) == "configs/model/docnn.yaml:3"
    assert str(origins.of(("train", "epochs"))) == "command line"


def test_included_files_include_others_relative_to_the_config_root(movies, write):
    write("configs/parts/kernels.yaml", "- 5\n- 7\n")
    write("configs/model/docnn.yaml", "kind: docnn\nkernels: ${from_file:parts/kernels.yaml}\n")
    assert compose(movies).tree["model"]["kernels"] == [5, 7]


def test_an_include_within_a_list_is_read(movies, write):
    write("configs/parts/group.yaml", "{nodes: 2, gpus: 1}\n")
    tree = compose(movies, ["resources={groups: ['${from_file:parts/group.yaml}']}"]).tree
    assert tree["resources"] == {"groups": [{"nodes": 2, "gpus": 1}]}


@pytest.mark.parametrize(
    "content, value", [("300", 300), ("a text", "a text"), ("# a\ntrue", True), ("''", "")]
)
def test_an_included_file_may_hold_a_single_value(movies, write, content, value):
    write("configs/parts/width.yaml", content)
    composed = compose(movies, ["model.filters=${from_file:parts/width.yaml}"])
    assert composed.tree["model"]["filters"] == value
    assert str(composed.origins.of(("model", "filters"))) == "configs/parts/width.yaml"


def test_a_single_value_may_refer_to_keys_and_the_environment(movies, write, monkeypatch):
    monkeypatch.setenv("ROOT", "/data")
    write("configs/tokenizer/bpe.yaml", "${oc.env:ROOT}/${name}.json\n")
    override = ["data.tokenizer=${from_file:tokenizer/bpe.yaml}"]
    assert compose(movies, override).tree["data"]["tokenizer"] == "/data/movies.json"


def test_a_file_may_hold_nothing_but_the_include_of_another(movies, write):
    write("configs/tokenizer/small.yaml", "${from_file:tokenizer/bpe.yaml}")
    write("configs/tokenizer/bpe.yaml", "bpe.json")
    override = ["data.tokenizer=${from_file:tokenizer/small.yaml}"]
    assert compose(movies, override).tree["data"]["tokenizer"] == "bpe.json"


def test_files_that_hold_nothing_but_each_other_are_a_circle(movies, write, faults):
    write("configs/a.yaml", "${from_file:b.yaml}")
    write("configs/b.yaml", "${from_file:a.yaml}")
    (fault,) = faults(compose, movies, ["x=${from_file:a.yaml}"])
    assert "configs/a.yaml -> configs/b.yaml -> configs/a.yaml" in fault.problem


def test_the_same_file_may_be_included_twice(movies, write):
    write("configs/parts/one.yaml", "{a: 1}")
    tree = compose(movies, ["x=${from_file:parts/one.yaml}", "y=${from_file:parts/one.yaml}"]).tree
    assert tree["x"] == tree["y"] == {"a": 1}


def test_the_name_of_an_include_may_come_from_the_environment(movies, write, monkeypatch):
    write("configs/model/wide.yaml", "{kind: docnn, filters: 500}")
    override = ["model=${from_file:model/${oc.env:FIRST,${oc.env:SECOND,docnn}}.yaml}"]
    assert compose(movies, override).tree["model"]["embedding_dim"] == 64
    monkeypatch.setenv("SECOND", "wide")
    assert compose(movies, override).tree["model"]["filters"] == 500


def test_the_name_of_an_include_may_refer_to_a_key(movies, write):
    write("configs/model/movies.yaml", "{kind: docnn, filters: 7}")
    assert compose(movies, ["model=${from_file:model/${name}.yaml}"]).tree["model"]["filters"] == 7


@pytest.mark.parametrize("name", ["mit Leerzeichen.yaml", "größe.yaml", "a,b.yaml", "a:b.yaml"])
def test_an_include_may_have_any_file_name(movies, write, name):
    write(f"configs/{name}", "{kind: docnn}")
    assert compose(movies, [f"model=${{from_file:{name}}}"]).tree["model"] == {"kind": "docnn"}
    assert compose(movies, [f"model=${{from_file:'{name}'}}"]).tree["model"] == {"kind": "docnn"}


def test_a_circle_of_includes_is_shown_as_a_chain(movies, write, faults):
    write("configs/a.yaml", "inner: ${from_file:b.yaml}\n")
    write("configs/b.yaml", "# line 1\nback: ${from_file:a.yaml}\n")
    (fault,) = faults(compose, movies, ["x=${from_file:a.yaml}"])
    assert fault.key == "x.inner.back"
    assert fault.origin == "configs/b.yaml:2"
    assert "configs/a.yaml -> configs/b.yaml -> configs/a.yaml" in fault.problem


def test_a_file_that_includes_itself_is_a_circle(write, faults):
    path = write("alone.yaml", "name: x\nmodel: ${from_file:./alone.yaml}\n")
    (fault,) = faults(compose, path)
    assert "alone.yaml -> alone.yaml" in fault.problem


def test_a_missing_include_names_the_key_and_file_that_want_it(movies, write, faults):
    write("configs/movies.yaml", "name: movies\nmodel: ${from_file:model/docnnn.yaml}\n")
    (fault,) = faults(compose, movies)
    assert (fault.key, fault.origin) == ("model", "configs/movies.yaml:2")
    assert "configs/model/docnnn.yaml: there is no such file" in fault.problem
    assert fault.hint == "did you mean docnn.yaml?"


@pytest.mark.parametrize(
    "content, problem",
    [
        ("", "is empty"),
        ("# only a comment\n", "is empty"),
        ("null", "is empty"),
        ("a: [1, 2", "not YAML"),
    ],
)
def test_an_include_that_holds_nothing_is_a_fault_of_the_key_that_wants_it(
    movies, write, faults, content, problem
):
    write("configs/model/docnn.yaml", content)
    (fault,) = faults(compose, movies)
    assert fault.key == "model"
    assert "configs/model/docnn.yaml" in fault.problem
    assert problem in fault.problem


def test_an_include_in_the_middle_of_a_text_is_refused(movies, faults):
    (fault,) = faults(compose, movies, ["name=x${from_file:model/docnn.yaml}"])
    assert fault.key == "name"
    assert "must be the whole value" in fault.problem


class TestConfigRoot:
    """Includes are relative to one folder."""

    @pytest.fixture
    def elsewhere(self, write):
        write("elsewhere/model/docnn.yaml", "{kind: docnn, filters: 11}")
        return Path("elsewhere")

    def test_an_argument_says_it_first(self, movies, elsewhere, monkeypatch):
        monkeypatch.setenv("STK_CONFIG_DIR", "nowhere")
        assert compose(movies, (), elsewhere).tree["model"]["filters"] == 11

    def test_the_environment_says_it_next(self, movies, elsewhere, monkeypatch):
        monkeypatch.setenv("STK_CONFIG_DIR", str(elsewhere))
        assert compose(movies).tree["model"]["filters"] == 11

    def test_else_it_is_the_nearest_folder_configs_above_the_file(self, movies, write):
        path = write("configs/studies/deep/movies.yaml", movies.read_text())
        assert compose(path).tree["model"]["embedding_dim"] == 64

    def test_from_within_that_folder_too(self, movies, monkeypatch):
        monkeypatch.chdir("configs")
        assert compose(Path("movies.yaml")).tree["model"]["embedding_dim"] == 64

    def test_else_it_is_the_folder_of_the_file(self, movies, elsewhere, write):
        path = write("elsewhere/movies.yaml", movies.read_text())
        assert compose(path).tree["model"]["filters"] == 11


class TestReferences:
    def test_a_variable_is_read_with_nested_defaults(self, movies, monkeypatch):
        override = ["name=${oc.env:FIRST,${oc.env:SECOND,third}}"]
        assert compose(movies, override).tree["name"] == "third"
        monkeypatch.setenv("SECOND", "second")
        assert compose(movies, override).tree["name"] == "second"
        monkeypatch.setenv("FIRST", "first")
        assert compose(movies, override).tree["name"] == "first"

    def test_a_key_may_refer_to_another_one_absolutely_and_relatively(self, movies, write):
        text = "kind: docnn\nembedding_dim: 64\nfilters: ${model.embedding_dim}\nhidden: ['${..filters}']\n"
        write("configs/model/docnn.yaml", text)
        model = compose(movies, ["seed=${model.filters}"]).tree["model"]
        assert (model["filters"], model["hidden"]) == (64, [64])

    def test_a_key_may_refer_to_a_section(self, movies):
        assert compose(movies, ["copy=${model}"]).tree["copy"] == compose(movies).tree["model"]

    def test_an_override_changes_what_a_reference_gives(self, movies):
        tree = compose(movies, ["model.filters=${model.embedding_dim}", "model.embedding_dim=5"]).tree
        assert tree["model"]["filters"] == 5

    def test_a_backslash_keeps_the_text(self, movies):
        tree = compose(movies, [r"resources.setup=['cd \${HOME}', 'echo $USER']"]).tree
        assert tree["resources"]["setup"] == ["cd ${HOME}", "echo $USER"]

    def test_all_unset_variables_are_named_with_the_keys_that_want_them(self, write, faults):
        text = "name: ${oc.env:UNSET}\nmodel:\n  kind: docnn\n  x: a-${oc.env:UNSET_TOO}/${oc.env:UNSET}\n"
        found = faults(compose, write("a.yaml", text))
        assert [(fault.key, fault.origin) for fault in found] == [
            ("name", "a.yaml:1"),
            ("model.x", "a.yaml:4"),
            ("model.x", "a.yaml:4"),
        ]
        assert {fault.problem for fault in found} == {
            "the environment variable UNSET is not set",
            "the environment variable UNSET_TOO is not set",
        }

    def test_an_unset_variable_in_the_name_of_an_include_is_named(self, movies, faults):
        (fault,) = faults(compose, movies, ["model=${from_file:model/${oc.env:UNSET}.yaml}"])
        assert (fault.key, fault.origin) == ("model", "command line")
        assert "UNSET is not set" in fault.problem

    @pytest.mark.parametrize(
        "value, problem",
        [
            ("${nowhere.at.all}", "no key nowhere.at.all"),
            ("${nope:1}", "cannot be resolved"),
            ("'${oc.env'", "not a valid reference"),
            ("${x}", "cannot be resolved"),
            ("'???'", "expected a value"),
        ],
    )
    def test_a_reference_that_leads_nowhere_is_one_fault(self, movies, faults, value, problem):
        (fault,) = faults(compose, movies, [f"x={value}"])
        assert fault.key == "x"
        assert problem in fault.problem

    def test_a_section_that_holds_itself_is_a_fault(self, movies, faults):
        (fault,) = faults(compose, movies, ["x.y=${x}"])
        assert fault.key == "x.y"

    def test_a_fault_is_not_repeated_by_what_refers_to_it(self, movies, faults):
        overrides = ["model=${from_file:nowhere.yaml}", "seed=${model.filters}", "x=${seed}"]
        (fault,) = faults(compose, movies, overrides)
        assert fault.key == "model"


class TestOverrides:
    @pytest.mark.parametrize(
        "override, path, value",
        [
            ("name=other", ("name",), "other"),
            ("model.embedding_dim=32", ("model", "embedding_dim"), 32),
            ("model.kernels=[2,3,4]", ("model", "kernels"), [2, 3, 4]),
            ("model.kernels.1=9", ("model", "kernels", 1), 9),
            ("model.kernels.2=9", ("model", "kernels", 2), 9),
            ("model={kind: docnn}", ("model",), {"kind": "docnn"}),
            ("train.epochs=3", ("train", "epochs"), 3),
            ("train.clip_norm=", ("train", "clip_norm"), None),
            ("data.path=a=b", ("data", "path"), "a=b"),
            (" name = other ", ("name",), "other"),
            ("data.delimiter=,", ("data", "delimiter"), ","),
            ("data.delimiter=|", ("data", "delimiter"), "|"),
            ("data.delimiter = : ", ("data", "delimiter"), ":"),
            ("data.delimiter=\t", ("data", "delimiter"), "\t"),
            ('data.delimiter="\\t"', ("data", "delimiter"), "\t"),
            ("train.clip_norm=~", ("train", "clip_norm"), None),
            ("resources.sbatch.wckey=${name}", ("resources", "sbatch", "wckey"), "movies"),
        ],
    )
    def test_an_override_sets_any_key(self, movies, override, path, value):
        found = compose(movies, [override]).tree
        for part in path:
            found = found[part]
        assert found == value

    def test_an_override_reaches_into_a_list(self, movies, write):
        write(
            "configs/movies.yaml", "resources:\n  groups:\n  - {nodes: 1, gpus: 3}\n  - {nodes: 2, gpus: 1}\n"
        )
        tree = compose(movies, ["resources.groups.1.nodes=5"]).tree
        assert tree["resources"]["groups"] == [{"nodes": 1, "gpus": 3}, {"nodes": 5, "gpus": 1}]

    def test_a_later_override_wins(self, movies):
        assert compose(movies, ["seed=1", "seed=2"]).tree["seed"] == 2

    def test_an_override_may_be_an_include_and_be_overridden_within(self, movies, write):
        write("configs/model/wide.yaml", "{kind: docnn, filters: 500, hidden: [1]}")
        tree = compose(movies, ["model=${from_file:model/wide.yaml}", "model.filters=6"]).tree
        assert tree["model"] == {"kind": "docnn", "filters": 6, "hidden": [1]}

    def test_a_replaced_include_is_never_read(self, movies, write):
        write("configs/model/docnn.yaml", "not: [yaml")
        assert compose(movies, ["model={kind: docnn}"]).tree["model"] == {"kind": "docnn"}

    def test_an_empty_section_of_the_file_can_be_filled(self, movies):
        movies.write_text(movies.read_text() + "train:\n")
        assert compose(movies, ["train.epochs=3"]).tree["train"] == {"epochs": 3}

    @pytest.mark.parametrize(
        "override", ["epochs", "=3", ".epochs=3", "train.=3", "train..epochs=3", "", "a." * 60 + "b=1"]
    )
    def test_an_override_without_key_or_value_is_a_fault(self, movies, faults, override):
        (fault,) = faults(compose, movies, [override])
        assert fault.origin == "command line"
        assert repr(override) in fault.problem

    @pytest.mark.parametrize(
        "override, key, problem",
        [
            ("model.kernels.3=1", "model.kernels.3", "an index from 0 to 2"),
            ("model.kernels.x=1", "model.kernels.x", "is a list"),
            ("model.kernels.-1=1", "model.kernels.-1", "is a list"),
            ("name.first=1", "name.first", "name is 'movies', which holds no keys"),
            ("model.kernels=[1", "model.kernels", "not YAML"),
            ("model={a: 1, a: 2}", "model.a", "given twice"),
        ],
    )
    def test_an_override_that_fits_nowhere_is_a_fault(self, movies, faults, override, key, problem):
        (fault,) = faults(compose, movies, [override])
        assert (fault.key, fault.origin) == (key, "command line")
        assert problem in fault.problem

    def test_overrides_within_a_section_that_could_not_be_read_add_no_faults(self, movies, faults):
        overrides = ["model=${from_file:nowhere.yaml}", "model.filters=3"]
        (fault,) = faults(compose, movies, overrides)
        assert fault.key == "model"


class TestFiles:
    """An experiment file that cannot be read is one clear fault."""

    @pytest.mark.parametrize(
        "content, origin, problem",
        [
            (b"", "a.yaml", "the file is empty"),
            (b"# nothing\n", "a.yaml", "the file is empty"),
            (b"- 1\n", "a.yaml", "the top level is a list"),
            (b"hello\n", "a.yaml", "the top level is a single value"),
            (b"name: x\nseed: \xff\n", "a.yaml:2", "not UTF-8 text: byte 14 is 0xff"),
            (b"name: x\ntrain: {a: ]\n", "a.yaml:2", "line 2, column 12"),
            (b"name: x\n\ttrain: 1\n", "a.yaml:2", "not YAML"),
            (b"name: x\x07\n", "a.yaml", "not YAML"),
            (b"a: 1\n---\nb: 2\n", "a.yaml:2", "not YAML"),
            (b"a: &x [*x]\n", "a.yaml:1", "an alias contains itself"),
            (b"[" * 100_000, "a.yaml:1", "nested more than"),
            (b"a: 1\nb: " + b"[{c: " * 5_000, "a.yaml:2", "nested more than"),
            (b"a:\n" + b"- " * 5_000, "a.yaml:2", "nested more than"),
            (
                b"a: &a [1, 1]\n"
                + b"".join(b"%c: &%c [*%c, *%c]\n" % (c, c, c - 1, c - 1) for c in range(ord("b"), ord("z"))),
                "a.yaml:1",
                "too large",
            ),
        ],
    )
    def test_with_its_place(self, faults, content, origin, problem):
        Path("a.yaml").write_bytes(content)
        (fault,) = faults(load, Path("a.yaml"))
        assert (fault.key, fault.origin) == ("", origin)
        assert problem in fault.problem

    def test_missing_with_the_nearest_name(self, movies, faults):
        (fault,) = faults(load, Path("configs/movie.yaml"))
        assert (fault.origin, fault.problem) == ("configs/movie.yaml", "there is no such file")
        assert fault.hint == "did you mean movies.yaml?"

    def test_a_folder(self, movies, faults):
        (fault,) = faults(load, Path("configs"))
        assert "this is a folder" in fault.problem

    def test_unreadable(self, movies, faults, request):
        movies.chmod(0)
        request.getfixturevalue("ordinary_user")
        (fault,) = faults(load, movies)
        assert "Permission denied" in fault.problem

    def test_a_path_that_no_file_can_have(self, faults):
        (fault,) = faults(load, Path("a\0b"))
        assert "cannot be read" in fault.problem

    def test_a_byte_order_mark_is_no_part_of_the_first_key(self, movies):
        movies.write_bytes(b"\xef\xbb\xbf" + movies.read_bytes())
        assert compose(movies).tree["name"] == "movies"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", ["configs/movies.yaml", "configs/model/docnn.yaml"])
def test_line_ends_of_windows_change_nothing(movies, name, mark):
    expected = compose(movies).tree
    path = Path(name)
    path.write_bytes(mark + path.read_bytes().replace(b"\n", b"\r\n"))
    assert compose(movies).tree == expected


def test_an_experiment_without_references_needs_no_omegaconf(movies):
    movies.write_text(movies.read_text().replace("${oc.env:STK_DATA_DIR,data}", "data"))
    code = (
        "import sys; from pathlib import Path; from toolkit.config import load;"
        "load(Path('configs/movies.yaml')); slow = {'omegaconf', 'torch', 'numpy'} & set(sys.modules);"
        "sys.exit(str(slow) if slow else 0)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
_NAME = _TEXT | st.sampled_from(["a.b", "0", "[x]", "${y}", "keys", "items", "???", "\\", "'"])
_VALUE = _TEXT.filter(lambda text: "${" not in text and text != "???")
_PLAIN = st.recursive(
    _VALUE | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAME, inner, max_size=3),
    max_leaves=6,
)
_WITHIN_A_TEST = settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])


@_WITHIN_A_TEST
@given(st.dictionaries(_NAME, _PLAIN, max_size=4))
def test_a_reference_leaves_everything_beside_it_as_it_is(working_folder, tree):
    tree = {**tree, "reference": "${oc.env:UNSET,hello}"}
    path = working_folder / "a.yaml"
    path.write_text(dump(tree), encoding="utf-8", newline="")
    assert compose(path).tree == {**tree, "reference": "hello"}


_PIECES = [
    "${",
    "}",
    "${oc.env:",
    "${from_file:",
    "${a",
    "${.x",
    ":",
    ",",
    "[",
    "]",
    "\\",
    "'",
    "a.x",
    "=",
    " ",
]
_BROKEN = st.lists(st.sampled_from(_PIECES), max_size=6).map("".join)


@_WITHIN_A_TEST
@pytest.mark.filterwarnings("ignore:In the sequence")
@given(
    st.dictionaries(st.sampled_from("ab"), _BROKEN | st.lists(_BROKEN, max_size=2), min_size=1),
    st.lists(_BROKEN | _BROKEN.map("a.x=".__add__), max_size=2),
)
def test_whatever_is_written_the_answer_is_a_tree_or_a_config_error(working_folder, tree, overrides):
    path = working_folder / "a.yaml"
    path.write_text(dump(tree), encoding="utf-8")
    try:
        compose(path, overrides)
    except ConfigError as error:
        assert error.faults  # noqa: PT017 (either outcome is right)
