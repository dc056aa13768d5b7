"""Runs that detect and correct errors, each trained once per session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.support.tiny_training import Attempt, Lab
from tests.toolkit.workloads.spelling.spelling_files import (
    tiny_corrections,
    tiny_plus,
    tiny_plus_detection,
    tiny_repair,
    tiny_repaired_corrections,
    tiny_texts,
    tiny_word_corrections,
    tiny_words,
    tiny_words_graph,
    write_pairs,
)
from toolkit.config import Experiment
from toolkit.run.run_dir import RunDir
from toolkit.task import task_class

OnBenchmark = Callable[..., Any]
_LONGER = ("train.epochs=6", "model.dropout=0.0")


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("lab"))


def _trained(make: Callable[..., Experiment], *overrides: str) -> Any:
    """A fixture: a run of an experiment."""

    @pytest.fixture(scope="session")
    def run(lab: Lab) -> RunDir:
        return lab.train(make(lab.folder / make.__name__, *overrides), Attempt())

    return run


of_words = _trained(tiny_words, *_LONGER)
of_graphs = _trained(tiny_words_graph, *_LONGER)
of_texts = _trained(tiny_texts, *_LONGER, "train.epochs=12")
of_corrections = _trained(tiny_corrections, *_LONGER)
of_word_corrections = _trained(tiny_word_corrections, *_LONGER, "train.epochs=12")
of_repaired_corrections = _trained(tiny_repaired_corrections)
of_repairs = _trained(tiny_repair, *_LONGER)
of_plus = _trained(tiny_plus)
of_plus_detection = _trained(tiny_plus_detection)


@pytest.fixture
def on_benchmark(tmp_path: Path) -> OnBenchmark:
    """Makes the task of an experiment, with a benchmark of these lines as its test set."""

    def made(make: Callable[..., Experiment], corrupt: list[str], correct: list[str], *overrides: str) -> Any:
        folder = write_pairs(tmp_path / "benchmark", corrupt, correct)
        experiment = make(tmp_path, f"data.test=[{folder}]", *overrides)
        kind: Any = task_class(experiment)
        return kind(experiment)

    return made
