"""Each reference is resolved once, in any order, and references cannot exhaust the memory."""

from __future__ import annotations

import pytest

from tests.tiers import first_quick
from tests.toolkit.config.composing import compose

pytestmark = pytest.mark.timeout(120)

#: Each line doubles the size of the line before it: sixty lines exceed any memory.
LINES = range(1, 60)


@pytest.mark.parametrize("line", ["a{0}: ${{a{1}}}${{a{1}}}\n", "a{0}: ['${{a{1}}}', '${{a{1}}}']\n"])
@pytest.mark.parametrize("order", first_quick([1, -1]))
def test_exponential_references_are_refused_with_the_line(write, faults, line, order):
    lines = [line.format(number, number - 1) for number in LINES][::order]
    (fault,) = faults(compose, write("bomb.yaml", "a0: x\n" + "".join(lines)))
    assert fault.origin.startswith("bomb.yaml:")
    assert fault.key.startswith("a")


def test_exponential_references_in_the_path_of_an_include_are_refused(write, faults):
    lines = "".join(f"a{number}: ${{a{number - 1}}}${{a{number - 1}}}\n" for number in LINES)
    faults(compose, write("bomb.yaml", f"a0: x\n{lines}b: ${{from_file:${{a{LINES.stop - 1}}}}}\n"))


@pytest.mark.parametrize("text", ["${b}" * 101, "${b}" + "x" * 65_536])
def test_a_text_with_too_many_references_or_characters_is_refused(write, faults, text):
    (fault,) = faults(compose, write("long.yaml", f"b: x\na: {text}\n"))
    assert (fault.origin, fault.key) == ("long.yaml:2", "a")


def test_an_experiment_with_thousands_of_references_is_refused(write, faults):
    lines = "".join(f"a{number}: {'${b}' * 99}\n" for number in range(100))
    (fault,) = faults(compose, write("many.yaml", f"b: x\n{lines}"))
    assert "references" in fault.problem


def test_references_in_any_order_and_of_any_kind_are_resolved(write):
    text = (
        "d: ${c}/d\nc: ${.b}/c\nb: ${list.1}\nlist: ['1', '${deep.${which}.name}']\nwhich: one\n"
        "deep: {one: {name: x, again: '${..two}'}, two: {same: '${deep.one.name}'}}\ncopy: ${deep}\n"
    )
    tree = compose(write("order.yaml", text)).tree
    assert tree["d"] == "x/c/d"
    assert tree["copy"] == {"one": {"name": "x", "again": {"same": "x"}}, "two": {"same": "x"}}
