"""No experiment file, and no file that it names, can exhaust the memory or block for ever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.tiers import first_quick
from tests.toolkit.config.composing import compose
from toolkit.config import load
from toolkit.config.composition.json_files import NotJson, read_json_mapping
from toolkit.config.composition.yaml_files import MAX_BYTES, MAX_DEPTH, MAX_VALUES

pytestmark = pytest.mark.timeout(120)

#: Each line doubles the size of the line before it: sixty lines exceed any memory.
LINES = range(1, 60)


@pytest.mark.parametrize(
    "first, line",
    [
        ("a0: &a0 {x: 1}\n", "a{0}: &a{0} {{<<: [*a{1}, *a{1}]}}\n"),
        ("a0: &a0 [1]\n", "a{0}: &a{0} [*a{1}, *a{1}]\n"),
        ("a0: &a0 {x: 1}\n", "a{0}: &a{0} {{b: *a{1}, c: *a{1}}}\n"),
    ],
    ids=["merges", "lists", "mappings"],
)
def test_exponential_aliases_are_refused_with_the_line(write, faults, first, line):
    path = write("bomb.yaml", first + "".join(line.format(number, number - 1) for number in LINES))
    (fault,) = faults(compose, path)
    assert fault.origin.startswith("bomb.yaml:")
    assert f"{MAX_VALUES:,}" in fault.problem


@pytest.mark.parametrize("text", ["x: 1\na: &a {b: *a}\n", "x: 1\na: &a {<<: *a}\n", "x: 1\na: &a [[*a]]\n"])
def test_an_alias_that_contains_itself_is_refused_with_the_line(write, faults, text):
    (fault,) = faults(compose, write("circle.yaml", text))
    assert fault.origin == "circle.yaml:2"
    assert "contains itself" in fault.problem


def test_exponential_includes_are_refused_with_the_line(write, faults):
    for number in LINES:
        write(f"{number}.yaml", f"a: ${{from_file:{number + 1}.yaml}}\nb: ${{from_file:{number + 1}.yaml}}\n")
    write(f"{LINES.stop}.yaml", "x\n")
    (fault,) = faults(compose, write("bomb.yaml", "x: ${from_file:1.yaml}\n"))
    assert ".yaml:" in fault.origin
    assert fault.key.startswith("x.a")


def test_includes_nested_deeper_than_the_limit_are_refused(write, faults):
    for number in range(5):
        inner = f"${{from_file:{number + 1}.yaml}}"
        write(f"{number}.yaml", "{a: " * (MAX_DEPTH // 3) + f"'{inner}'" + "}" * (MAX_DEPTH // 3))
    write("5.yaml", "x\n")
    (fault,) = faults(compose, write("deep.yaml", "a: ${from_file:0.yaml}\n"))
    assert f"{MAX_DEPTH} deep" in fault.problem


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


@pytest.fixture
def pipe(working_folder):
    os.mkfifo(working_folder / "pipe")
    return working_folder / "pipe"


@pytest.mark.parametrize("name", ["pipe", "/dev/zero"])
def test_include_of_a_pipe_or_device_is_refused(write, faults, pipe, name):
    (fault,) = faults(compose, write("a.yaml", f"x: 1\ny: ${{from_file:{name}}}\n"))
    assert (fault.origin, fault.key) == ("a.yaml:2", "y")
    assert "pipe or a device" in fault.problem


@pytest.mark.parametrize("name", ["pipe", "/dev/zero"])
def test_a_hosts_file_that_is_a_pipe_or_device_is_refused(broken, pipe, name):
    (fault,) = broken(resources={"hosts": name})
    assert fault.key == "resources.hosts"
    assert "pipe or a device" in fault.problem


def test_a_file_above_the_size_limit_is_refused(working_folder, faults):
    (working_folder / "large.yaml").write_bytes(b"#" * (MAX_BYTES + 1))
    (fault,) = faults(compose, Path("large.yaml"))
    assert f"{MAX_BYTES:,} bytes" in fault.problem
    with pytest.raises(NotJson, match=f"{MAX_BYTES:,} bytes"):
        read_json_mapping("large.yaml")


@pytest.mark.parametrize("name", ["../up", "a/b", "/etc", "a\\nb", "$(id)", "`id`", "a;b", "..", "-rf", ""])
def test_a_name_with_path_or_shell_characters_is_refused(movies, faults, name):
    assert [fault.key for fault in faults(load, movies, [f'name="{name}"'])] == ["name"]


@pytest.mark.parametrize("number", ["1e400", "-1e400", ".nan", ".inf", "1" * 5000])
@pytest.mark.parametrize("key", ["optimizer.lr", "train.epochs"])
def test_nan_infinity_and_huge_ints_are_refused(movies, faults, key, number):
    assert [fault.key for fault in faults(load, movies, [f"{key}={number}"])] == [key]


@pytest.mark.parametrize("text", ['"a\\0b"', '"a\\ud800b"'])
def test_text_with_a_nul_or_a_surrogate_is_refused(movies, faults, text):
    found = faults(load, movies, [f"resources.comment={text}"])
    assert [fault.key for fault in found] == ["resources.comment"]
