"""Every machine computes the same world from the same counts, and finds out which machine it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import UserError
from toolkit.launch.machines.layout import Machines, machines_of_hosts, own_names, own_node

OWN = ("node-a.example.org", "10.0.0.7")
COUNTS = st.lists(st.integers(1, 16), min_size=1, max_size=12)


@given(COUNTS)
def test_ranks_have_no_gap_and_each_belongs_to_one_machine(counts: list[int]) -> None:
    world = Machines(counts=tuple(counts), node=0)
    ranks = [rank for node in range(len(counts)) for rank in world.ranks(node)]
    assert ranks == list(range(world.size))
    assert [len(world.ranks(node)) for node in range(len(counts))] == counts


@given(COUNTS)
def test_every_machine_computes_the_same_world(counts: list[int]) -> None:
    names = [f"node-{number}" for number in range(len(counts))]
    hosts = dict(zip(names, counts, strict=True))
    seen = [machines_of_hosts(hosts, [name]) for name in names]
    assert [machines.node for machines in seen] == list(range(len(counts)))
    assert {machines.counts for machines in seen} == {tuple(counts)}
    assert {machines.master_addr for machines in seen[1:]} <= {names[0]}


@pytest.mark.parametrize("counts", [[], [0], [3, 0], [2, -1]])
def test_a_machine_without_a_process_is_refused(counts: list[int]) -> None:
    with pytest.raises(UserError, match="each machine needs at least 1"):
        Machines(counts=tuple(counts), node=0)


def test_this_machine_is_recognized_by_any_of_its_names_and_by_no_other() -> None:
    names = ["node-a", "NODE-A", "node-a.example.org", "10.0.0.7", "localhost", "127.0.0.1", "::1"]
    others = ["node", "node-a2", "node-a.elsewhere.org", "10.0.0.70", "10", "a"]
    found = [own_node(["node-b", name, "10.0.0.8"], OWN) for name in [*names, *others]]
    assert found == [1] * len(names) + [None] * len(others)


def test_hosts_are_numbered_in_order_and_the_first_is_the_master() -> None:
    machines = machines_of_hosts({"node-b": 3, "node-a": 0, "node-c": 2}, OWN)
    assert (machines.node, machines.master_addr) == (1, "node-b")
    # Without a GPU it runs one process.
    assert (machines.counts, machines.count) == ((3, 1, 2), 1)


@pytest.mark.parametrize("node, counts", [(None, (4, 3)), (0, (4, 3)), (1, (3, 4))])
def test_an_unlisted_machine_is_added_with_all_its_gpus(node: int | None, counts: tuple[int, ...]) -> None:
    machines = machines_of_hosts({"node-b": 3}, OWN, own_count=4, node=node)
    assert (machines.node, machines.counts) == (node or 0, counts)


def test_a_node_rank_that_contradicts_the_hosts_is_refused() -> None:
    with pytest.raises(UserError, match=r"--node-rank is 1, but in the map of hosts this machine is node 0"):
        machines_of_hosts({"node-a": 1, "node-b": 1}, OWN, node=1)


@pytest.mark.parametrize(
    "place, problem",
    [
        ({"node": -1, "master_addr": "a"}, "there are 2 machines: expected a number from 0 to 1"),
        ({"node": 2, "master_addr": "a"}, "there are 2 machines: expected a number from 0 to 1"),
        ({"node": 1}, r"node 1 needs the name or address of node 0: .*--master-addr"),
        ({"node": 0, "master_port": 0}, "the port is 0"),
        ({"node": 0, "master_port": 65536}, "the port is 65536"),
    ],
)
def test_a_wrong_number_address_or_port_is_refused(place: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        Machines(counts=(3, 1), **place)


def test_a_machine_is_described_by_number_name_and_ranks() -> None:
    machines = Machines(counts=(3, 1), node=0, names=("node-a", "node-b"))
    assert machines.describe(0) == "node 0 (node-a, ranks 0 to 2)"
    assert machines.describe(1) == "node 1 (node-b, rank 3)"


def test_own_names_include_localhost_and_its_address() -> None:
    assert own_node(["localhost"], own_names()) == 0
    assert "127.0.0.1" in own_names()
