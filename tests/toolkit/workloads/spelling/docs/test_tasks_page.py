"""The keys, metrics and files on the pages on the spelling tasks and on repair agree with the code."""

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

PAGE, REPAIR = (
    (ROOT / "toolkit/workloads/spelling/docs" / name).read_text(encoding="utf-8")
    for name in ("tasks.md", "repair.md")
)
_, DETECTION, CORRECTION, *_ = re.split(r"^## ", PAGE, flags=re.MULTILINE)
EXAMPLES, REPAIRS = (
    [yaml.safe_load(text) for text in re.findall(r"(?:^ {4}\S.*\n(?: {4}.*\n)*)", page, re.MULTILINE)]
    for page in (PAGE, REPAIR)
)
#: Where each kind is described.
SECTIONS = {
    "sed_words": DETECTION,
    "sed_sequence": DETECTION,
    "sec_nmt": CORRECTION,
    "sec_words_nmt": CORRECTION,
    "tokenization_repair": REPAIR,
    "tokenization_repair_plus": REPAIR,
}


def test_first_example_is_a_complete_experiment_and_the_second_changes_its_data():
    whole, characters = EXAMPLES[:2]
    experiment = check({"name": "a", **whole})
    changed = check({"name": "a", **whole, "data": whole["data"] | characters["data"]})
    assert experiment.task.kind == changed.task.kind == "sec_nmt"
    assert changed.data.noise.kind == "chained"


def test_examples_of_repair_are_complete_experiments_whose_metrics_are_named():
    experiments = [check({"name": "a", **example}) for example in REPAIRS]
    assert [each.task.kind for each in experiments] == ["tokenization_repair", "tokenization_repair_plus"]
    names = {metric.name for each in experiments for metric in metrics_of(each.task, each.data)}
    assert {name for name in names if f"`{name}`" not in REPAIR} == set()


@pytest.mark.parametrize("kind", SECTIONS)
def test_kinds_models_and_metrics_are_named(kind):
    row, section = task_kinds()[kind], SECTIONS[kind]
    page = REPAIR if section is REPAIR else PAGE
    assert f"| `{kind}` | {', '.join(f'`{name}`' for name in row.models)} |" in page
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
    for path in (files.repairs("<split>"), files.repair_counts("<split>"), files.detections("<split>")):
        assert f"`{path.name}`" in REPAIR
    assert f"`{files.corrections('test').name}`" in REPAIR
