"""What must hold between the keys of resources, and with those of other sections."""

from __future__ import annotations

import pytest

from slurm.config.world_size import world_size


@pytest.mark.parametrize("name", ["nodes", "tasks_per_node"])
def test_groups_exclude_nodes_and_tasks_per_node(broken, name):
    (fault,) = broken(resources={"groups": [{"nodes": 1, "gpus": 1}], name: 2})
    assert fault.key == f"resources.{name}"
    assert "groups together with" in fault.problem


@pytest.mark.parametrize(
    "resources, key",
    [
        ({"nodes": 3, "tasks_per_node": 3}, "resources.tasks_per_node"),
        ({"nodes": "1-3", "tasks_per_node": 3}, "resources.tasks_per_node"),
        ({"groups": [{"nodes": 3, "gpus": 3}]}, "resources.groups"),
        ({"hosts": {"node-a": 5, "node-b": 4}}, "resources.hosts"),
    ],
)
def test_more_processes_than_samples_in_a_step_are_refused(broken, good, resources, key):
    (fault,) = broken(resources=resources, train={"batch_size": 8})
    assert fault.key == key
    assert "9 processes" in fault.problem
    assert "train.batch_size is 8" in fault.problem
    assert "train.batch_size to 9" in fault.hint
    assert good(resources=resources, train={"batch_size": 9})


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A B", "A=B", "Ä", "A\n"])
def test_invalid_variable_name_is_refused(broken, name):
    (fault,) = broken(resources={"environment": {name: "x"}})
    assert fault.key.startswith("resources.environment.")
    assert repr(name) in fault.problem


@pytest.mark.parametrize("name", ["", "--mem", "Mem", "a b", "a=b", "a\nb"])
def test_invalid_sbatch_option_name_is_refused(broken, name):
    (fault,) = broken(resources={"sbatch": {name: "x"}})
    assert repr(name) in fault.problem


@pytest.mark.parametrize("value", [None, [1], {"a": 1}])
def test_sbatch_option_without_a_single_value_is_refused(broken, value):
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
def test_line_breaks_in_sbatch_options_are_refused(broken, resources, key):
    (fault,) = broken(resources=resources)
    assert fault.key == key
    assert "line break" in fault.problem


@pytest.mark.parametrize("name", ["HF_TOKEN", "WANDB_API_KEY", "aws_secret", "DB_PASSWORD_FILE"])
def test_secret_in_the_environment_is_refused(broken, name):
    (fault,) = broken(resources={"environment": {name: "s3cret"}})
    assert fault.key == f"resources.environment.{name}"
    assert f"export {name} in the shell" in fault.hint
    assert "s3cret" not in str(fault)


def test_variables_and_shell_lines_may_have_several_lines(good):
    assert good(resources={"environment": {"A": "x\ny"}, "setup": ["a\nb"]})


@pytest.mark.parametrize("nodes, most", [(4, 4), ("4", 4), ("1-4", 4), ("2-2", 2), ("3-10", 10)])
def test_nodes_is_a_number_or_a_range_whose_maximum_counts(good, nodes, most):
    resources = good(resources={"nodes": nodes, "tasks_per_node": 2}).resources
    assert resources.nodes == (int(nodes) if str(nodes).isdecimal() else nodes)
    assert world_size(resources) == 2 * most


def test_reversed_range_of_hosts_is_refused_with_a_suggestion(broken):
    (fault,) = broken(resources={"nodes": "4-1"})
    assert (fault.key, fault.hint) == ("resources.nodes", "1-4")


@pytest.mark.parametrize("nodes", ["", "0-4", "1-", "-4", "1-4-6", "a", "01-4", "1 - 4"])
def test_invalid_nodes_text_is_refused_with_the_expected_form(broken, nodes):
    (fault,) = broken(resources={"nodes": nodes})
    assert fault.key == "resources.nodes"
    assert "expected a whole number of at least 1, or text of the form" in fault.problem


@pytest.mark.parametrize("nodes", [0, -1, 1.5, True, [1, 4]])
def test_number_of_hosts_must_be_a_positive_integer(broken, nodes):
    (fault,) = broken(resources={"nodes": nodes})
    assert fault.key == "resources.nodes"


@pytest.mark.parametrize("parallel", ["dp", "none"])
def test_single_process_modes_require_resources_of_one_process(broken, good, parallel):
    (fault,) = broken(train={"parallel": parallel}, resources={"tasks_per_node": 2})
    assert fault.key == "train.parallel"
    assert fault.problem == f"found {parallel}, which is for one process, but the resources make 2"
    assert good(train={"parallel": parallel})
    assert good(train={"parallel": "ddp"}, resources={"tasks_per_node": 2})
