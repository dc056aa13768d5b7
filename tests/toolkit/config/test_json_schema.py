"""The JSON Schema of an experiment file says what the checks say, as far as a schema can."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from jsonschema import Draft202012Validator

from tests.toolkit.config.test_serialize import SAMPLE, section
from tests.toolkit.config.trees import put
from toolkit.config import check, to_plain
from toolkit.config.fields import SWEEP
from toolkit.config.sections import experiment_type
from toolkit.errors import ConfigError
from toolkit.registry import task_kinds
from toolkit.sweeps.json_schema import file_schema
from toolkit.sweeps.section import KEYS


@cache
def validator() -> Draft202012Validator:
    return Draft202012Validator(json.loads(file_schema()))


def wrong(tree: dict[str, Any]) -> list[str]:
    return [error.message for error in validator().iter_errors(tree)]


def test_the_schema_is_valid_json_schema() -> None:
    Draft202012Validator.check_schema(validator().schema)


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(section(SAMPLE))
def test_experiments_that_pass_the_checks_are_valid(tree: dict[str, Any]) -> None:
    try:
        experiment = check(tree)
    except ConfigError:
        # Each section is right by itself, but two may contradict each other.
        reject()
    assert wrong(to_plain(experiment)) == []


def test_the_sweep_section_lists_all_of_its_keys() -> None:
    shown, *_ = validator().schema["properties"][SWEEP]["anyOf"]
    assert set(shown["properties"]) == set(KEYS)


def test_every_key_of_tasks_models_and_sections_has_a_description() -> None:
    defined = validator().schema["$defs"]
    for row in task_kinds().values():
        # Those of one experiment are not known here.
        of_all = () if row.own_sections else (row.data, *(model for model, _ in row.models.values()))
        for cls in filter(fields, (row.config, *of_all)):
            found = defined[f"{cls.__module__}.{cls.__name__}"]["properties"]
            assert list(found) == [each.name for each in fields(cls)]
            assert [name for name, key in found.items() if not key.get("description")] == []
    assert {each.name for each in fields(experiment_type())} <= set(validator().schema["properties"])


@pytest.mark.parametrize(
    "key, value",
    [
        ("name", "no/name"),
        ("nmae", "movies"),
        ("seed", -1),
        ("seed", "one"),
        ("task.kind", "no_such_task"),
        ("data.tokenizer", "bytes"),
        ("task", 3),
        ("model.kind", "line"),
        ("model.filters", 0),
        ("model.kernels", [3, "four"]),
        ("data.delimter", ","),
        ("data.splits", {"train": "much"}),
        ("train.epochs", 0),
        ("train.epochs", 1.5),
        ("train.accumulation", None),
        ("train.deterministic", "yes"),
        ("train.reduction", "exakt"),
        ("optimizer.lr", 0),
        ("optimizer.betas", [0.9]),
        ("evaluation.metric", "accuracy:best"),
        ("resources.nodes", "1-"),
        ("resources.partitoin", "gpu"),
        ("resources.groups", [{"nodes": 1}]),
        ("resources.hosts", {"a": -1}),
        ("resources.webhook_events", ["start"]),
        ("sweep", {"method": "all"}),
        ("sweep", {"seeds": []}),
    ],
)
def test_a_wrong_key_or_value_is_invalid(tree: dict[str, Any], key: str, value: Any) -> None:
    assert wrong(put(tree, key, value))


@pytest.mark.parametrize("name", ["name", "task", "model", "data"])
def test_an_experiment_without_a_mandatory_key_is_invalid(tree: dict[str, Any], name: str) -> None:
    del tree[name]
    assert wrong(tree)


@pytest.mark.parametrize(
    "key, value",
    [
        ("name", 17),
        ("seed", "${oc.env:SEED,1}"),
        ("task", "${from_file:task/classify.yaml}"),
        ("data.tokenizer", "${data.column}"),
        ("model", "${from_file:model/docnn.yaml}"),
        ("model.kernels", "${model.widths}"),
        ("model.kernels", [3, "${oc.env:WIDTH}"]),
        ("data", "${from_file:data/movies.yaml}"),
        ("data.splits", {"train": 0.8, "validation": 0.2, "test": None}),
        ("train", None),
        ("train", "${from_file:train/long.yaml}"),
        ("train.clip_norm", None),
        ("train.epochs", 3.0),
        ("optimizer.betas", [0, "${oc.env:BETA}"]),
        ("resources.nodes", "1-4"),
        ("resources.time", 60),
        ("resources.hosts", "hosts.json"),
        ("resources.groups", [{"nodes": 1, "gpus": 2}]),
        ("resources.sbatch", {"wckey": "a", "nice": 5, "spread-job": True}),
        ("sweep", "${from_file:sweep/rates.yaml}"),
        ("sweep", {"parameters": {"optimizer.lr": [0.1, 0.2]}, "seeds": [0, 1], "metric": "accuracy"}),
    ],
)
def test_includes_references_and_plain_values_are_valid(tree: dict[str, Any], key: str, value: Any) -> None:
    assert wrong(put(tree, key, value)) == []
