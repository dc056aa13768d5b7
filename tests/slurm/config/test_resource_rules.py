"""What must hold between the keys of resources, and with those of other sections."""

from __future__ import annotations

import pytest

from slurm.config.world_size import world_size


@pytest.mark.parametrize("name", ["nodes", "tasks_per_node"])
def test_groups_exclude_equal_hosts(broken, name):
    (fault,) = broken(resources={"groups": [{"nodes": 1, "gpus": 1}], name: 2})
    assert fault.key == f"resources.{name}"
    assert "groups together with" in fault.problem


@pytest.mark.parametrize(
    "resources, key",
    [
        ({"nodes": 3, "tasks_per_node": 3}, "resources.tasks_per_node"),
        ({"groups": [{"nodes": 3, "gpus": 3}]}, "resources.groups"),
    ],
)
def test_more_processes_than_samples_in_a_step_have_no_work(broken, good, resources, key):
    (fault,) = broken(resources=resources, train={"batch_size": 8})
    assert fault.key == key
    assert "9 processes" in fault.problem
    assert "train.batch_size is 8" in fault.problem
    assert "train.batch_size to 9" in fault.hint
    assert good(resources=resources, train={"batch_size": 9})


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A B", "A=B", "Ä", "A\n"])
def test_a_variable_has_a_name_that_a_shell_takes(broken, name):
    (fault,) = broken(resources={"environment": {name: "x"}})
    assert fault.key.startswith("resources.environment.")
    assert repr(name) in fault.problem


@pytest.mark.parametrize("name", ["", "--mem", "Mem", "a b", "a=b", "a\nb"])
def test_an_option_of_sbatch_is_a_long_name(broken, name):
    (fault,) = broken(resources={"sbatch": {name: "x"}})
    assert repr(name) in fault.problem


@pytest.mark.parametrize("value", [None, [1], {"a": 1}])
def test_an_option_of_sbatch_has_a_single_value(broken, value):
    (fault,) = broken(resources={"sbatch": {"wckey": value}})
    assert fault.key == "resources.sbatch.wckey"


@pytest.mark.parametrize(
    "resources, key",
    [
        ({"comment": "a\nb"}, "resources.comment"),
        ({"partition": "a\rb"}, "resources.partition"),
        ({"sbatch": {"wckey": "a\nb"}}, "resources.sbatch.wckey"),
        ({"groups": [{"nodes": 1, "gpus": 1, "constraint": "a\n"}]}, "resources.groups.0.constraint"),
    ],
)
def test_what_stands_in_a_line_of_the_batch_script_holds_no_line_break(broken, resources, key):
    (fault,) = broken(resources=resources)
    assert fault.key == key
    assert "line break" in fault.problem


@pytest.mark.parametrize("name", ["HF_TOKEN", "WANDB_API_KEY", "aws_secret", "DB_PASSWORD_FILE"])
def test_a_secret_is_not_recorded(broken, name):
    (fault,) = broken(resources={"environment": {name: "s3cret"}})
    assert fault.key == f"resources.environment.{name}"
    assert f"export {name} in the shell" in fault.hint
    assert "s3cret" not in str(fault)


def test_variables_and_shell_lines_may_have_several_lines(good):
    assert good(resources={"environment": {"A": "x\ny"}, "setup": ["a\nb"]})


@pytest.mark.parametrize("nodes, most", [(4, 4), ("4", 4), ("1-4", 4), ("2-2", 2), ("3-10", 10)])
def test_hosts_are_a_number_or_a_range_of_which_the_largest_counts(good, nodes, most):
    resources = good(resources={"nodes": nodes, "tasks_per_node": 2}).resources
    assert resources.nodes == (int(nodes) if str(nodes).isdecimal() else nodes)
    assert world_size(resources) == 2 * most


def test_the_largest_number_of_hosts_must_have_work_for_all_processes(good, broken):
    assert good(resources={"nodes": "1-4", "tasks_per_node": 2}, train={"batch_size": 8})
    (fault,) = broken(resources={"nodes": "1-5", "tasks_per_node": 2}, train={"batch_size": 8})
    assert "10 processes" in fault.problem


def test_a_range_begins_with_the_smaller_number(broken):
    (fault,) = broken(resources={"nodes": "4-1"})
    assert (fault.key, fault.hint) == ("resources.nodes", "1-4")


@pytest.mark.parametrize("nodes", ["", "0-4", "1-", "-4", "1-4-6", "a", "01-4", "1 - 4"])
def test_anything_else_is_told_what_may_stand_there(broken, nodes):
    (fault,) = broken(resources={"nodes": nodes})
    assert fault.key == "resources.nodes"
    assert "expected a whole number of at least 1, or text of the form" in fault.problem


@pytest.mark.parametrize("nodes", [0, -1, 1.5, True, [1, 4]])
def test_a_number_of_hosts_is_whole_and_positive(broken, nodes):
    (fault,) = broken(resources={"nodes": nodes})
    assert fault.key == "resources.nodes"


@pytest.mark.parametrize("parallel", ["dp", "none"])
def test_what_is_for_one_process_takes_resources_of_one(broken, good, parallel):
    (fault,) = broken(train={"parallel": parallel}, resources={"tasks_per_node": 2})
    assert fault.key == "train.parallel"
    assert fault.problem == f"found {parallel}, which is for one process, but the resources make 2"
    assert good(train={"parallel": parallel})
    assert good(train={"parallel": "ddp"}, resources={"tasks_per_node": 2})
