"""Runs that detect errors, trained once."""

from __future__ import annotations

import pytest

from tests.toolkit.spelling_files import tiny_texts, tiny_words, tiny_words_graph
from tests.toolkit.training import Attempt, Lab
from toolkit.rundir import RunDir

_LONGER = ("train.epochs=12", "model.dropout=0.0")


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="session")
def of_words(lab: Lab) -> RunDir:
    """A run of sed_words that has learnt something."""
    return lab.train(tiny_words(lab.folder / "words", *_LONGER), Attempt())


@pytest.fixture(scope="session")
def of_graphs(lab: Lab) -> RunDir:
    """The same with the graph network."""
    return lab.train(tiny_words_graph(lab.folder / "graph", *_LONGER), Attempt())


@pytest.fixture(scope="session")
def of_texts(lab: Lab) -> RunDir:
    """A run of sed_sequence."""
    return lab.train(tiny_texts(lab.folder / "texts", *_LONGER), Attempt())
