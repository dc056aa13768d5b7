"""The examples, metrics and files on the page on the repair of white space agree with the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.docs.readme import ROOT
from toolkit.config import check
from toolkit.registry import metrics_of, task_kinds
from toolkit.run.run_dir import RunDir
from toolkit.workloads.spelling.files import SpellingFiles

PAGE = (ROOT / "toolkit/workloads/spelling/docs/repair.md").read_text(encoding="utf-8")
EXAMPLES = [yaml.safe_load(found) for found in re.findall(r"(?:^    .*\n)+", PAGE, re.MULTILINE)]


def test_examples_are_complete_experiments():
    kinds = [check({"name": "a", **example}).task.kind for example in EXAMPLES]
    assert kinds == ["tokenization_repair", "tokenization_repair_plus"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each["task"]["kind"])
def test_every_metric_is_named(example):
    experiment = check({"name": "a", **example})
    names = [each.name for each in metrics_of(experiment.task, experiment.data)]
    assert {name for name in names if f"`{name}`" not in PAGE} == set()
    assert f"| `{experiment.task.kind}` | `{next(iter(task_kinds()[experiment.task.kind].models))}` |" in PAGE


def test_the_files_of_a_run_are_named():
    files = SpellingFiles(RunDir(Path()))
    for path in (files.repairs("<split>"), files.repair_counts("<split>"), files.detections("<split>")):
        assert f"`{path.name}`" in PAGE
    assert f"`{files.corrections('test').name}`" in PAGE
