"""Runs that detect and correct errors, each trained once per session."""

from __future__ import annotations

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
)
from toolkit.run.run_dir import RunDir

_LONGER = ("train.epochs=6", "model.dropout=0.0")


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="session")
def of_words(lab: Lab) -> RunDir:
    """A run of sed_words that has learnt something."""
    return lab.train(tiny_words(lab.folder / "words", *_LONGER), Attempt())


@pytest.fixture(scope="session")
def of_graphs(lab: Lab) -> RunDir:
    """A run of sed_words with the graph network."""
    return lab.train(tiny_words_graph(lab.folder / "graph", *_LONGER), Attempt())


@pytest.fixture(scope="session")
def of_texts(lab: Lab) -> RunDir:
    """A run of sed_sequence."""
    return lab.train(tiny_texts(lab.folder / "texts", *_LONGER, "train.epochs=12"), Attempt())


@pytest.fixture(scope="session")
def of_corrections(lab: Lab) -> RunDir:
    """A run of sec_nmt."""
    return lab.train(tiny_corrections(lab.folder / "corrections", *_LONGER), Attempt())


@pytest.fixture(scope="session")
def of_word_corrections(lab: Lab) -> RunDir:
    """A run of sec_words_nmt."""
    longest = (*_LONGER, "train.epochs=12")
    return lab.train(tiny_word_corrections(lab.folder / "word_corrections", *longest), Attempt())


@pytest.fixture(scope="session")
def of_repaired_corrections(lab: Lab) -> RunDir:
    """A run of sec_nmt that reads characters."""
    return lab.train(tiny_repaired_corrections(lab.folder / "repaired_corrections"), Attempt())


@pytest.fixture(scope="session")
def of_repairs(lab: Lab) -> RunDir:
    """A run of tokenization_repair."""
    return lab.train(tiny_repair(lab.folder / "repairs", *_LONGER), Attempt())


@pytest.fixture(scope="session")
def of_plus(lab: Lab) -> RunDir:
    """A run of tokenization_repair_plus with a decoder."""
    return lab.train(tiny_plus(lab.folder / "plus"), Attempt())


@pytest.fixture(scope="session")
def of_plus_detection(lab: Lab) -> RunDir:
    """A run of tokenization_repair_plus without a decoder."""
    return lab.train(tiny_plus_detection(lab.folder / "plus_detection"), Attempt())
