"""Shapes of the models of our workloads, with the test of tests/toolkit/training."""

from __future__ import annotations

import pytest

from tests.toolkit.training.warm_start.test_shapes import (
    Make,
    test_reported_shapes_equal_those_of_the_saved_model,  # noqa: F401
)
from tests.toolkit.workloads.entity_disambiguation.entity_files import tiny_entities
from tests.toolkit.workloads.spelling import spelling_files as spelling
from tests.toolkit.workloads.text_classification.tiny_texts import tiny_bert, tiny_docnn

# Of the repair that another model builds on, whose weights are read.
pytestmark = pytest.mark.filterwarnings("ignore:.*which is a no-op:UserWarning")
MADE = [
    tiny_docnn, tiny_bert, tiny_entities, spelling.tiny_words, spelling.tiny_words_graph,
    spelling.tiny_corrections, spelling.tiny_word_corrections, spelling.tiny_repair, spelling.tiny_plus,
]  # fmt: skip


@pytest.fixture(params=MADE)
def made(request: pytest.FixtureRequest) -> Make:
    found: Make = request.param
    return found
