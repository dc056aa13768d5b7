"""A rule over several keys names the key to change and the remedy."""

from __future__ import annotations

import pytest

from toolkit.config import check


def test_the_metric_is_one_of_the_task(good, broken):
    assert good(evaluation={"metric": "macro_f1:max"})
    (fault,) = broken(evaluation={"metric": "acuracy:max"})
    assert fault.key == "evaluation.metric"
    assert "loss, accuracy, macro_precision" in fault.problem
    assert fault.hint == "did you mean accuracy?"
    (fault,) = broken(evaluation={"metric": "bleu"})
    assert str(fault).count("macro_precision") == 1


def test_a_step_is_limited_by_samples_or_by_tokens(good, broken):
    samples, tokens = good(), good(train={"batch_max_length": 4096, "bucket_span": 4})
    assert (samples.train.batch_size, samples.train.bucket_batches) == (64, 50)
    assert (tokens.train.batch_size, tokens.train.bucket_batches) == (None, None)
    faults = broken(train={"batch_size": 64, "batch_max_length": 4096, "bucket_batches": 1})
    assert [fault.key for fault in faults] == ["train.batch_size", "train.bucket_batches"]
    assert "found 64 beside train.batch_max_length 4096" in faults[0].problem
    assert faults[0].hint == "set one of them to null"


def test_an_evaluation_batch_is_limited_by_samples_or_by_tokens(good, broken):
    assert good().evaluation.batch_size == 256
    assert good(evaluation={"batch_max_length": 4096}).evaluation.batch_size is None
    (fault,) = broken(evaluation={"batch_max_length": 4096, "batch_size": 256})
    assert fault.key == "evaluation.batch_size"


@pytest.mark.parametrize(
    "section, written, key, said",
    [
        ("train", {"bucket_span": 4}, "bucket_span", "train.batch_max_length, which is null"),
        ("optimizer", {"kind": "adamw", "momentum": 0.9}, "momentum", "sgd"),
        ("optimizer", {"kind": "adagrad", "eps": 1e-6}, "eps", ""),
        ("lr_scheduler", {"kind": "linear", "step_at": [0.75]}, "step_at", "kind linear does not take it"),
        ("lr_scheduler", {"kind": "linear", "gamma": 0.1}, "gamma", "kind linear does not take it"),
        ("lr_scheduler", {"kind": "cosine", "step_epochs": 3}, "step_epochs", "kind cosine does not take it"),
        ("lr_scheduler", {"kind": "polynomial", "arguments": {"pow": 2.0}}, "arguments.pow", ""),
        ("lr_scheduler", {"kind": "warmup_stable_decay"}, "arguments", "num_decay_steps"),
        ("lr_scheduler", {"kind": "linear", "arguments": {"power": 2.0}}, "arguments", ""),
        ("lr_scheduler", {"kind": "polynomial", "arguments": {"power": "x"}}, "arguments.power", "float"),
        ("lr_scheduler", {"kind": "polynomial", "arguments": {"lr_end": 0.1}}, "arguments.lr_end", "0.001"),
        ("lr_scheduler", {"kind": "polynomial", "arguments": {"lr_end": 0.001}}, "arguments.lr_end", "0.001"),
        ("optimizer", {"kind": "adam", "betas": [0.9, 1.0]}, "betas.1", "below 1"),
        ("optimizer", {"kind": "adam", "betas": [-0.1, 0.9]}, "betas.0", "-0.1"),
        ("optimizer", {"kind": "sgd", "arguments": {"nesterov": True}}, "momentum", "nesterov"),
    ],
)
def test_a_key_that_others_exclude_or_need_is_named(broken, section, written, key, said):
    (fault,) = broken(**{section: written})
    assert fault.key == f"{section}.{key}"
    assert said in str(fault)


def test_arguments_of_the_schedule_are_accepted(good):
    assert good(lr_scheduler={"kind": "polynomial", "warmup": 10, "arguments": {"power": 2, "lr_end": 1e-4}})


def test_nesterov_takes_a_momentum_and_no_dampening(good, broken):
    written = {"kind": "sgd", "momentum": 0.9, "arguments": {"nesterov": True}}
    assert good(optimizer=written)
    (fault,) = broken(optimizer=written | {"arguments": {"nesterov": True, "dampening": 0.1}})
    assert fault.key == "optimizer.arguments.dampening"


def test_values_that_torch_refuses_are_read_from_runs_that_recorded_them(changed):
    optimizer = {"kind": "sgd", "arguments": {"nesterov": True}}
    assert check(changed(optimizer=optimizer), is_stored=True).optimizer.arguments == optimizer["arguments"]


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
def test_the_data_is_one_file_or_one_file_for_each_split(broken, data, key, problem):
    (fault,) = broken(data=data)
    assert fault.key == key
    assert problem in fault.problem
    assert "expected either path" in fault.problem


def test_a_test_file_alone_is_refused(broken):
    assert [fault.key for fault in broken(data={"path": None, "test": "a"})] == [
        "data.train",
        "data.validation",
    ]


def test_train_and_validation_files_are_accepted_with_or_without_a_test_file(good):
    assert good(data={"path": None, "train": "a", "validation": "b"})
    assert good(data={"path": None, "train": "a", "validation": "b", "test": "c"})


@pytest.mark.parametrize(
    "splits, keys",
    [
        ({"train": 1, "validation": 1, "valid": 1}, ["data.splits.valid"]),
        ({"train": 1, "validation": 1, "test": -0.1}, ["data.splits.test"]),
        ({"train": 1, "validation": 1, "test": float("nan")}, ["data.splits.test"]),
        ({"train": 0, "validation": 1}, ["data.splits.train"]),
        ({"train": 1, "test": 1}, ["data.splits.validation"]),
        ({}, ["data.splits.train", "data.splits.validation"]),
        ({"test": 1, "dev": 1}, ["data.splits.dev", "data.splits.train", "data.splits.validation"]),
    ],
)
def test_invalid_split_shares_are_refused_at_their_keys(broken, splits, keys):
    assert [fault.key for fault in broken(data={"splits": splits})] == keys


@pytest.mark.parametrize("delimiter", ["", ",,", "\n", "\r", "\0", '"', "\\t"])
def test_a_delimiter_is_one_character(broken, delimiter):
    (fault,) = broken(data={"delimiter": delimiter})
    assert fault.key == "data.delimiter"


@pytest.mark.parametrize("delimiter", [",", "\t", "|", "→", None])
def test_any_other_single_character_is_accepted_as_a_delimiter(good, delimiter):
    assert good(data={"delimiter": delimiter}).data.delimiter == delimiter


def test_exact_reduction_needs_a_power_of_two_of_micro_batches(good, broken):
    assert good(train={"reduction": "exact", "logical_ranks": 16})
    assert good(train={"reduction": "fast", "logical_ranks": 6})
    (fault,) = broken(train={"reduction": "exact", "logical_ranks": 6})
    assert fault.key == "train.logical_ranks"
    assert fault.hint.startswith("4 or 8")
    (fault,) = broken(train={"reduction": "exact", "accumulation": 3})
    assert fault.key == "train.accumulation"


@pytest.mark.parametrize(
    "right, wrong, key",
    [
        ({"precision": "fp16", "device": "auto"}, {"precision": "fp16", "device": "cpu"}, "precision"),
        ({"steps": 100, "epochs": None}, {"steps": 100, "epochs": 3}, "steps"),
        ({"eval_steps": 100, "eval_per_epoch": 3}, {"eval_steps": 9, "eval_epochs": 2}, "eval_steps"),
    ],
)
def test_keys_of_training_that_exclude_each_other_are_refused(good, broken, right, wrong, key):
    assert good(train=right)
    (fault,) = broken(train=wrong)
    assert fault.key == f"train.{key}"


def test_a_compiled_model_needs_the_fast_reduction_and_cannot_be_deterministic(good, broken):
    compiled = {"compile": "on", "reduction": "fast", "deterministic": False}
    assert good(train=compiled)
    for odd in ({"reduction": "exact"}, {"deterministic": True}, {"parallel": "dp"}):
        (fault,) = broken(train=compiled | odd)
        assert fault.key == "train.compile"


def test_only_arguments_of_the_optimizer_are_accepted(good, broken):
    assert good(optimizer={"kind": "adam", "arguments": {"amsgrad": True}})
    assert good(optimizer={"kind": "adafactor", "arguments": {"eps": [None, 0.001], "d": 1}})
    assert good(optimizer={"kind": "rmsprop", "momentum": 0.9, "arguments": {"centered": True}})
    for kind, arguments, hint in (
        ("adam", {"amsgard": True}, "amsgrad"),
        ("adam", {"amsgrad": "yes"}, "Adam"),
        ("adam", {"betas": [0.9, 0.99]}, "optimizer.betas"),
        ("adagrad", {"params": 1}, "lr_decay"),
        ("sgd", {"fused": False}, "dampening"),
    ):
        (fault,) = broken(optimizer={"kind": kind, "arguments": arguments})
        assert fault.key == f"optimizer.arguments.{next(iter(arguments))}"
        assert hint in fault.hint


def test_cosine_with_min_lr_takes_one_of_its_two_floors(good, broken):
    assert good(lr_scheduler={"kind": "cosine_with_min_lr", "arguments": {"min_lr": 1e-5}})
    for arguments in ({}, {"min_lr": 1e-5, "min_lr_rate": 0.1}, {"min_lr": None}):
        (fault,) = broken(lr_scheduler={"kind": "cosine_with_min_lr", "arguments": arguments})
        assert fault.key == "lr_scheduler.arguments"


def test_a_rule_is_skipped_if_one_of_its_keys_has_a_fault(broken):
    (fault,) = broken(resources={"tasks_per_node": 99}, train={"batch_size": "x"})
    assert fault.key == "train.batch_size"


def test_an_unknown_key_does_not_skip_the_rules_of_its_section(broken):
    found = broken(
        resources={"tasks_per_node": 99, "nope": 1}, task={"nope": 1}, evaluation={"metric": "x:min"}
    )
    assert [fault.key for fault in found] == [
        "evaluation.metric", "resources.nope", "resources.tasks_per_node", "task.nope",
    ]  # fmt: skip


def test_step_at_is_accepted_for_kind_step_without_step_epochs(good, broken):
    assert good(lr_scheduler={"kind": "step", "step_at": [0.75, 0.9]}).lr_scheduler.step_at == (0.75, 0.9)
    (fault,) = broken(lr_scheduler={"kind": "step", "step_at": [0.75], "step_epochs": 3})
    assert fault.key == "lr_scheduler.step_epochs"
    for share in (0, 1.5):
        (fault,) = broken(lr_scheduler={"kind": "step", "step_at": [share]})
        assert fault.key == "lr_scheduler.step_at.0"
