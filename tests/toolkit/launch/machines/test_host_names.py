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
def test_different_names_of_one_host_are_recognized(one: str, other: str) -> None:
    assert is_same_host(one, other)
    assert named_twice([one, "node-b", other]) == (one, other)


@pytest.mark.parametrize(
    "one, other", [("node-a", "node-b"), ("10.0.0.1", "10.0.0.2"), ("10.0.0.1", "10"), ("a.x.org", "a.y.org")]
)
def test_names_of_different_hosts_are_distinguished(one: str, other: str) -> None:
    assert not is_same_host(one, other)
    assert named_twice([one, other]) is None
