"""A value that refers to the environment or to other keys."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.toolkit.config.composing import compose
from toolkit.config.composition.yaml_files import dump


class TestReferences:
    def test_a_variable_is_read_with_nested_defaults(self, movies, monkeypatch):
        override = ["name=${oc.env:FIRST,${oc.env:SECOND,third}}"]
        assert compose(movies, override).tree["name"] == "third"
        monkeypatch.setenv("SECOND", "second")
        assert compose(movies, override).tree["name"] == "second"
        monkeypatch.setenv("FIRST", "first")
        assert compose(movies, override).tree["name"] == "first"

    def test_a_key_may_refer_to_another_key_absolutely_and_relatively(self, movies, write):
        text = "kind: docnn\nembedding_dim: 64\nfilters: ${model.embedding_dim}\nhidden: ['${..filters}']\n"
        write("configs/model/docnn.yaml", text)
        model = compose(movies, ["seed=${model.filters}"]).tree["model"]
        assert (model["filters"], model["hidden"]) == (64, [64])

    def test_a_reference_resolves_to_the_overridden_value(self, movies):
        tree = compose(movies, ["model.filters=${model.embedding_dim}", "model.embedding_dim=5"]).tree
        assert tree["model"]["filters"] == 5

    def test_references_in_any_order_and_of_any_kind_are_resolved(self, write):
        text = (
            "d: ${c}/d\nc: ${.b}/c\nb: ${list.1}\nlist: ['1', '${deep.${which}.name}']\nwhich: one\n"
            "deep: {one: {name: x, again: '${..two}'}, two: {same: '${deep.one.name}'}}\ncopy: ${deep}\n"
        )
        tree = compose(write("order.yaml", text)).tree
        assert tree["d"] == "x/c/d"
        assert tree["copy"] == {"one": {"name": "x", "again": {"same": "x"}}, "two": {"same": "x"}}

    def test_an_escaped_reference_stays_text(self, movies):
        tree = compose(movies, [r"resources.setup=['cd \${HOME}', 'echo $USER']"]).tree
        assert tree["resources"]["setup"] == ["cd ${HOME}", "echo $USER"]

    @pytest.mark.parametrize(
        "text, hint", [("${run.dri}", "did you mean run.dir?"), ("${form_file:x}", "did you mean from_file?")]
    )
    def test_a_misspelt_reference_is_named(self, movies, faults, text, hint):
        (fault,) = faults(compose, movies, [f"name={text}"])
        assert (fault.key, fault.hint) == ("name", hint)

    def test_all_unset_variables_are_named_with_the_keys_that_use_them(self, write, faults):
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
    def test_a_reference_that_cannot_be_resolved_is_one_fault(self, movies, faults, value, problem):
        (fault,) = faults(compose, movies, [f"x={value}"])
        assert fault.key == "x"
        assert problem in fault.problem

    def test_a_section_that_contains_itself_is_a_fault(self, movies, faults):
        (fault,) = faults(compose, movies, ["x.y=${x}"])
        assert fault.key == "x.y"

    def test_a_fault_is_not_repeated_for_references_to_its_key(self, movies, faults):
        overrides = ["model=${from_file:nowhere.yaml}", "seed=${model.filters}", "x=${seed}"]
        (fault,) = faults(compose, movies, overrides)
        assert fault.key == "model"


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
def test_resolving_a_reference_leaves_the_other_values_unchanged(working_folder, tree):
    tree = {**tree, "reference": "${oc.env:UNSET,hello}"}
    path = working_folder / "a.yaml"
    path.write_text(dump(tree), encoding="utf-8", newline="")
    assert compose(path).tree == {**tree, "reference": "hello"}
