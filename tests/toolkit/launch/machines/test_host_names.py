"""Which names mean the same host."""

from __future__ import annotations

import pytest

from toolkit.launch.machines.host_names import is_same_host, named_twice


@pytest.mark.parametrize(
    "one, other",
    [
        ("node-a", "NODE-A"),
        ("node-a", "node-a.example.org"),
        ("localhost", "127.0.0.1"),
        ("node-a", "node-a."),
    ],
)
def test_a_host_has_several_names(one: str, other: str) -> None:
    assert is_same_host(one, other)
    assert named_twice([one, "node-b", other]) == (one, other)


@pytest.mark.parametrize(
    "one, other", [("node-a", "node-b"), ("10.0.0.1", "10.0.0.2"), ("10.0.0.1", "10"), ("a.x.org", "a.y.org")]
)
def test_different_hosts_are_told_apart(one: str, other: str) -> None:
    assert not is_same_host(one, other)
    assert named_twice([one, other]) is None
