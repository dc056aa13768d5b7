"""The keys, metrics and files on the page on the spelling tasks agree with the code."""

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
from toolkit.workloads.spelling.tasks.correction.base import CorrectionTask

PAGE = (ROOT / "toolkit/workloads/spelling/docs/tasks.md").read_text(encoding="utf-8")
_, DETECTION, CORRECTION, *_ = re.split(r"^## ", PAGE, flags=re.MULTILINE)
EXAMPLES = [yaml.safe_load(text) for text in re.findall(r"(?:^ {4}\S.*\n(?: {4}.*\n)*)", PAGE, re.MULTILINE)]


def test_first_example_is_a_complete_experiment_and_the_second_changes_its_data():
    whole, characters = EXAMPLES[:2]
    experiment = check({"name": "a", **whole})
    changed = check({"name": "a", **whole, "data": whole["data"] | characters["data"]})
    assert experiment.task.kind == changed.task.kind == "sec_nmt"
    assert changed.data.noise.kind == "chained"


@pytest.mark.parametrize("kind", ["sed_words", "sed_sequence", "sec_nmt", "sec_words_nmt"])
def test_kinds_models_and_metrics_are_named(kind):
    row = task_kinds()[kind]
    assert f"| `{kind}` | {', '.join(f'`{name}`' for name in row.models)} |" in PAGE
    section = DETECTION if kind.startswith("sed") else CORRECTION
    assert {metric.name for metric in row.metrics if f"`{metric.name}`" not in section} == set()


def test_metrics_of_the_test_set_and_of_a_dictionary_are_named():
    experiment = check({"name": "a", **EXAMPLES[0]})
    names = {each.name for each in metrics_of(experiment.task, experiment.data)}
    assert {"correction_f1", "mned"}.isdisjoint(names)
    for name in ("correction_f1", "precision", "recall", "mned", "unended"):
        assert f"`{name}`" in CORRECTION
    assert "unended" in CorrectionTask.score_sums
    assert "`real_word_rate`" in DETECTION


def test_the_files_of_a_run_are_named():
    files = SpellingFiles(RunDir(Path()))
    for path in (files.detections("<split>"), files.detection_counts("<split>")):
        assert f"`{path.name}`" in DETECTION
    for path in (files.corrections("test"), files.correction_counts("<split>")):
        assert f"`{path.name}`" in CORRECTION
