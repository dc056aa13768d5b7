"""A file that another one includes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.config.composing import compose


def test_an_include_is_replaced_by_the_contents_of_its_file(movies):
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


def test_a_file_may_consist_of_one_include(movies, write):
    write("configs/tokenizer/small.yaml", "${from_file:tokenizer/bpe.yaml}")
    write("configs/tokenizer/bpe.yaml", "bpe.json")
    override = ["data.tokenizer=${from_file:tokenizer/small.yaml}"]
    assert compose(movies, override).tree["data"]["tokenizer"] == "bpe.json"


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


def test_a_cycle_of_includes_is_reported_as_a_chain(movies, write, faults):
    write("configs/a.yaml", "inner: ${from_file:b.yaml}\n")
    write("configs/b.yaml", "# line 1\nback: ${from_file:a.yaml}\n")
    (fault,) = faults(compose, movies, ["x=${from_file:a.yaml}"])
    assert fault.key == "x.inner.back"
    assert fault.origin == "configs/b.yaml:2"
    assert "configs/a.yaml -> configs/b.yaml -> configs/a.yaml" in fault.problem


def test_a_file_that_includes_itself_is_a_cycle(write, faults):
    path = write("alone.yaml", "name: x\nmodel: ${from_file:./alone.yaml}\n")
    (fault,) = faults(compose, path)
    assert "alone.yaml -> alone.yaml" in fault.problem


def test_a_missing_include_is_reported_with_its_key_and_file(movies, write, faults):
    write("configs/movies.yaml", "name: movies\nmodel: ${from_file:model/docnnn.yaml}\n")
    (fault,) = faults(compose, movies)
    assert (fault.key, fault.origin) == ("model", "configs/movies.yaml:2")
    assert "configs/model/docnnn.yaml: there is no such file" in fault.problem
    assert fault.hint == "did you mean docnn.yaml?"


@pytest.mark.parametrize(
    "content, problem",
    [("", "is empty"), ("# only a comment\n", "is empty"), ("null", "is empty"), ("a: [1, 2", "not YAML")],
)
def test_an_empty_or_invalid_included_file_is_reported_at_its_key(movies, write, faults, content, problem):
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

    def test_the_argument_has_the_highest_priority(self, movies, elsewhere, monkeypatch):
        monkeypatch.setenv("STK_CONFIG_DIR", "nowhere")
        assert compose(movies, (), elsewhere).tree["model"]["filters"] == 11

    def test_the_environment_variable_has_priority_over_the_folders(self, movies, elsewhere, monkeypatch):
        monkeypatch.setenv("STK_CONFIG_DIR", str(elsewhere))
        assert compose(movies).tree["model"]["filters"] == 11

    def test_the_nearest_configs_folder_above_the_file_is_the_default(self, movies, write):
        path = write("configs/studies/deep/movies.yaml", movies.read_text())
        assert compose(path).tree["model"]["embedding_dim"] == 64

    def test_the_configs_folder_is_found_from_within_it(self, movies, monkeypatch):
        monkeypatch.chdir("configs")
        assert compose(Path("movies.yaml")).tree["model"]["embedding_dim"] == 64

    def test_the_folder_of_the_file_is_the_root_without_a_configs_folder(self, movies, elsewhere, write):
        path = write("elsewhere/movies.yaml", movies.read_text())
        assert compose(path).tree["model"]["filters"] == 11
