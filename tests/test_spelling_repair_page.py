"""docs/spelling-repair.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.readme import ROOT
from toolkit.config import check
from toolkit.config.kinds import TASKS, metric_names
from toolkit.rundir import RunDir

PAGE = (ROOT / "docs" / "spelling-repair.md").read_text(encoding="utf-8")
EXAMPLES = [yaml.safe_load(found) for found in re.findall(r"(?:^    .*\n)+", PAGE, re.MULTILINE)]


def test_examples_are_whole_experiments():
    kinds = [check({"name": "a", **example}).task.kind for example in EXAMPLES]
    assert kinds == ["tokenization_repair", "tokenization_repair_plus"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each["task"]["kind"])
def test_every_metric_is_named(example):
    experiment = check({"name": "a", **example})
    names = metric_names(experiment.task, experiment.data)
    assert {name for name in names if f"`{name}`" not in PAGE} == set()
    assert f"| `{experiment.task.kind}` | `{next(iter(TASKS[experiment.task.kind].models))}` |" in PAGE


def test_files_are_those_of_a_run():
    run = RunDir(Path())
    for path in (run.repairs("<split>"), run.repair_counts("<split>"), run.detections("<split>")):
        assert f"`{path.name}`" in PAGE
    assert f"`{run.corrections('test').name}`" in PAGE
