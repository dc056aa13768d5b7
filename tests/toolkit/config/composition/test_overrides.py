"""Keys that the command line changes."""

from __future__ import annotations

import shlex

import pytest

from tests.toolkit.config.composing import compose


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
            ("data.delimiter=---", ("data", "delimiter"), "---"),
            ("data.delimiter=#", ("data", "delimiter"), "#"),
            ('name="run #3"', ("name",), "run #3"),
            ("name={a: 'it #3'}", ("name", "a"), "it #3"),
            ("name=run#3", ("name",), "run#3"),
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

    def test_an_override_sets_a_key_that_the_file_writes_with_dots(self, movies, write):
        write("configs/movies.yaml", "params: {model: a, model.lr: 0.1, model.dim: 8}\n")
        found = compose(movies, ["params.model.lr=0.2"]).tree["params"]
        assert found == {"model": "a", "model.lr": 0.2, "model.dim": 8}

    def test_a_later_override_wins(self, movies):
        assert compose(movies, ["seed=1", "seed=2"]).tree["seed"] == 2

    def test_keys_within_an_include_of_an_override_can_be_overridden(self, movies, write):
        write("configs/model/wide.yaml", "{kind: docnn, filters: 500, hidden: [1]}")
        tree = compose(movies, ["model=${from_file:model/wide.yaml}", "model.filters=6"]).tree
        assert tree["model"] == {"kind": "docnn", "filters": 6, "hidden": [1]}

    def test_a_replaced_include_is_never_read(self, movies, write):
        write("configs/model/docnn.yaml", "not: [yaml")
        assert compose(movies, ["model={kind: docnn}"]).tree["model"] == {"kind": "docnn"}

    def test_an_override_fills_an_empty_section_of_the_file(self, movies):
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
    def test_an_override_that_does_not_match_the_tree_is_a_fault(
        self, movies, faults, override, key, problem
    ):
        (fault,) = faults(compose, movies, [override])
        assert (fault.key, fault.origin) == (key, "command line")
        assert problem in fault.problem

    @pytest.mark.parametrize(
        "value", ["#ff0000", "run #3", "it's #4's", "--- #a", "[1, 2] # two", "a: 1 # b"]
    )
    def test_an_override_of_which_yaml_drops_a_comment_is_a_fault(self, movies, faults, value):
        (fault,) = faults(compose, movies, [f"name={value}"])
        assert (fault.key, fault.origin) == ("name", "command line")
        assert "comment" in fault.problem
        (quoted,) = shlex.split(fault.hint.partition(": ")[2])
        assert compose(movies, [quoted]).tree["name"] == value

    def test_overrides_within_an_unreadable_section_add_no_faults(self, movies, faults):
        overrides = ["model=${from_file:nowhere.yaml}", "model.filters=3"]
        (fault,) = faults(compose, movies, overrides)
        assert fault.key == "model"
