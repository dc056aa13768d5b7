from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm.config.resources import Group, Resources
from slurm.config.world_size import spread_world_size, world_size


def test_the_world_size_counts_gpus_and_at_least_one_process_for_a_host():
    groups = (Group(nodes=1, gpus=3), Group(nodes=2, gpus=1), Group(nodes=2, gpus=0))
    assert world_size(Resources(groups=groups)) == 7
    assert world_size(Resources(nodes=2, tasks_per_node=3)) == 6


@pytest.mark.parametrize(
    "given_keys, nodes, tasks",
    [
        ({"tasks_per_node": 8}, 5, 8),
        ({"nodes": 5}, 5, 8),
        ({"nodes": 10, "tasks_per_node": 4}, 10, 4),
        ({}, 1, 40),
        ({"tasks_per_node": 40}, 1, 40),
    ],
)
def test_a_world_size_is_shared_out_over_hosts(good, given_keys, nodes, tasks):
    resources = good(resources={"world_size": 40, **given_keys}).resources
    assert (resources.nodes, resources.tasks_per_node) == (nodes, tasks)
    assert world_size(resources) == 40


@pytest.mark.parametrize(
    "others, size",
    [
        ({"tasks_per_node": 3}, 3),
        ({"nodes": 3}, 3),
        ({"nodes": 2, "tasks_per_node": 2}, 4),
        ({"nodes": "1-2", "tasks_per_node": 4}, 8),
        ({"groups": [{"nodes": 1, "gpus": 3}]}, 3),
        ({"hosts": {"a": 3, "b": 1}}, 4),
    ],
)
def test_world_size_that_contradicts_other_keys_is_refused_with_both_numbers(broken, others, size):
    (fault,) = broken(resources={"world_size": 7, **others})
    assert fault.key == "resources.world_size"
    assert f"found 7, but the other keys of resources make {size} processes" in fault.problem


@pytest.mark.parametrize("others", [{"groups": [{"nodes": 2, "gpus": 2}]}, {"hosts": {"a": 3, "b": 1}}])
def test_world_size_may_be_given_with_matching_hosts_or_groups(good, others):
    assert good(resources={"world_size": 4, **others}).resources.world_size == 4


def test_fault_of_another_key_adds_no_fault_of_the_world_size(broken):
    (fault,) = broken(resources={"world_size": 4, "mem": [1]})
    assert fault.key == "resources.mem"


@given(world=st.integers(1, 500), nodes=st.integers(1, 40), tasks=st.integers(1, 40))
def test_spreading_keeps_the_world_size_and_is_idempotent(world, nodes, tasks):
    resources = spread_world_size(Resources(world_size=world, nodes=nodes, tasks_per_node=tasks))
    shared = (resources.nodes, resources.tasks_per_node) != (nodes, tasks)
    assert world_size(resources) == (world if shared else nodes * tasks)
    assert spread_world_size(resources) == resources
