"""What must hold between several keys is said of the key to change, and what to do."""

from __future__ import annotations

import pytest

from toolkit.config import world_size


def test_the_metric_is_one_of_the_task(good, broken):
    assert good(evaluation={"metric": "macro_f1:max"})
    (fault,) = broken(evaluation={"metric": "acuracy:max"})
    assert fault.key == "evaluation.metric"
    assert "loss, accuracy, macro_precision" in fault.problem
    assert fault.hint == "did you mean accuracy?"


def test_a_step_is_so_many_samples_or_so_many_tokens(good, broken):
    samples, tokens = good(), good(train={"batch_max_length": 4096, "bucket_span": 4})
    assert (samples.train.batch_size, samples.train.bucket_batches) == (64, 50)
    assert (tokens.train.batch_size, tokens.train.bucket_batches) == (None, None)
    faults = broken(train={"batch_size": 64, "batch_max_length": 4096, "bucket_batches": 1})
    assert [fault.key for fault in faults] == ["train.batch_size", "train.bucket_batches"]
    assert "found 64 beside train.batch_max_length 4096" in faults[0].problem
    assert faults[0].hint == "set one of them to null"


def test_an_evaluation_scores_so_many_samples_or_so_many_tokens_at_once(good, broken):
    assert good().evaluation.batch_size == 256
    assert good(evaluation={"batch_max_length": 4096}).evaluation.batch_size is None
    (fault,) = broken(evaluation={"batch_max_length": 4096, "batch_size": 256})
    assert fault.key == "evaluation.batch_size"


def test_buckets_are_for_steps_of_tokens(broken):
    (fault,) = broken(train={"bucket_span": 4})
    assert fault.key == "train.bucket_span"
    assert "train.batch_max_length, which is null" in fault.problem


@pytest.mark.parametrize(
    "data, key, problem",
    [
        ({"path": None}, "data", "no file is given"),
        ({"train": "a"}, "data", "path together with train"),
        ({"train": "a", "validation": "b"}, "data", "path together with train and validation"),
        ({"path": None, "train": "a"}, "data.validation", "is missing beside train"),
        ({"path": None, "validation": "a"}, "data.train", "is missing beside validation"),
    ],
)  # fmt: skip
def test_the_data_is_one_file_or_one_for_each_split(broken, data, key, problem):
    (fault,) = broken(data=data)
    assert fault.key == key
    assert problem in fault.problem
    assert "expected either path" in fault.problem


def test_a_test_file_alone_lacks_two_others(broken):
    assert [fault.key for fault in broken(data={"path": None, "test": "a"})] == [
        "data.train",
        "data.validation",
    ]


def test_two_or_three_files_are_enough(good):
    assert good(data={"path": None, "train": "a", "validation": "b"})
    assert good(data={"path": None, "train": "a", "validation": "b", "test": "c"})


@pytest.mark.parametrize(
    "splits, keys",
    [
        ({"train": 1, "validation": 1, "valid": 1}, ["data.splits.valid"]),
        ({"train": 1, "validation": 1, "test": -0.1}, ["data.splits.test"]),
        ({"train": 0, "validation": 1}, ["data.splits.train"]),
        ({"train": 1, "test": 1}, ["data.splits.validation"]),
        ({}, ["data.splits.train", "data.splits.validation"]),
        ({"test": 1, "dev": 1}, ["data.splits.dev", "data.splits.train", "data.splits.validation"]),
    ],
)
def test_the_shares_belong_to_the_three_splits(broken, splits, keys):
    assert [fault.key for fault in broken(data={"splits": splits})] == keys


@pytest.mark.parametrize("delimiter", ["", ",,", "\n", "\r", '"', "\\t"])
def test_a_delimiter_is_one_character(broken, delimiter):
    (fault,) = broken(data={"delimiter": delimiter})
    assert fault.key == "data.delimiter"


@pytest.mark.parametrize("delimiter", [",", "\t", "|", "→", None])
def test_any_other_character_delimits(good, delimiter):
    assert good(data={"delimiter": delimiter}).data.delimiter == delimiter


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
def test_more_processes_than_logical_ranks_have_no_work(broken, good, resources, key):
    (fault,) = broken(resources=resources)
    assert fault.key == key
    assert "9 processes" in fault.problem
    assert "train.logical_ranks is 8" in fault.problem
    assert "train.logical_ranks to 9" in fault.hint
    assert good(resources=resources, train={"logical_ranks": 9})


def test_an_exact_reduction_takes_a_power_of_two(good, broken):
    assert good(train={"reduction": "exact", "logical_ranks": 16})
    assert good(train={"reduction": "fast", "logical_ranks": 6})
    (fault,) = broken(train={"reduction": "exact", "logical_ranks": 6})
    assert fault.key == "train.logical_ranks"
    assert fault.hint.startswith("4 or 8")
    (fault,) = broken(train={"reduction": "exact", "accumulation": 3})
    assert fault.key == "train.accumulation"


def test_fp16_is_not_for_the_cpu(good, broken):
    assert good(train={"precision": "fp16", "device": "auto"})
    (fault,) = broken(train={"precision": "fp16", "device": "cpu"})
    assert fault.key == "train.precision"


@pytest.mark.parametrize("time", ["60", "1:30", "1:00:00", "2-0", "2-12:30", "2-12:30:15", 90])
def test_a_time_limit_has_one_of_slurms_forms(good, time):
    assert good(resources={"time": time}).resources.time == str(time)


@pytest.mark.parametrize("time", ["", "1h", "1:2:3:4", "2-", "-1", "1:", "٣", "1:00:00\n"])
def test_any_other_time_is_a_fault(broken, time):
    assert "resources.time" in [fault.key for fault in broken(resources={"time": time})]


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


def test_a_rule_is_left_out_where_one_of_its_keys_has_a_fault(broken):
    (fault,) = broken(resources={"tasks_per_node": 9}, train={"logical_ranks": "x"})
    assert fault.key == "train.logical_ranks"


def test_an_unknown_key_beside_it_does_not_silence_a_rule(broken):
    found = broken(
        resources={"tasks_per_node": 9, "nope": 1}, task={"nope": 1}, evaluation={"metric": "x:min"}
    )
    assert [fault.key for fault in found] == [
        "evaluation.metric", "resources.nope", "resources.tasks_per_node", "task.nope",
    ]  # fmt: skip


# -- a range of hosts


@pytest.mark.parametrize("nodes, most", [(4, 4), ("4", 4), ("1-4", 4), ("2-2", 2), ("3-10", 10)])
def test_hosts_are_a_number_or_a_range_of_which_the_largest_counts(good, nodes, most):
    resources = good(resources={"nodes": nodes, "tasks_per_node": 2}, train={"logical_ranks": 32}).resources
    assert resources.nodes == (int(nodes) if str(nodes).isdecimal() else nodes)
    assert world_size(resources) == 2 * most


def test_the_largest_number_of_hosts_must_have_work_for_all_processes(good, broken):
    assert good(resources={"nodes": "1-4", "tasks_per_node": 2})
    (fault,) = broken(resources={"nodes": "1-5", "tasks_per_node": 2})
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


def test_shares_of_the_steps_are_for_a_learning_rate_that_falls_in_steps(good, broken):
    assert good(lr_scheduler={"kind": "step", "step_at": [0.75, 0.9]}).lr_scheduler.step_at == (0.75, 0.9)
    (fault,) = broken(lr_scheduler={"kind": "linear", "step_at": [0.75]})
    assert (fault.key, fault.hint) == ("lr_scheduler.step_at", "kind: step, or null")
    for share in (0, 1.5):
        (fault,) = broken(lr_scheduler={"kind": "step", "step_at": [share]})
        assert fault.key == "lr_scheduler.step_at.0"


@pytest.mark.parametrize("parallel", ["dp", "none"])
def test_what_is_for_one_process_takes_resources_of_one(broken, good, parallel):
    (fault,) = broken(train={"parallel": parallel}, resources={"tasks_per_node": 2})
    assert fault.key == "train.parallel"
    assert fault.problem == f"found {parallel}, which is for one process, but the resources make 2"
    assert good(train={"parallel": parallel})
    assert good(train={"parallel": "ddp"}, resources={"tasks_per_node": 2})
