"""What is known of prepared data of our workloads, with the tests of tests/toolkit/precheck."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.precheck.test_steps_per_epoch import (
    Make,
    test_steps_are_known_without_slow_imports,  # noqa: F401
    test_the_steps_of_prepared_data_are_those_that_are_trained,  # noqa: F401
)
from tests.toolkit.workloads.entity_disambiguation.entity_files import tiny_entities
from tests.toolkit.workloads.spelling.spelling_files import tiny_words
from tests.toolkit.workloads.text_classification.tiny_texts import tiny_bert, tiny_docnn
from toolkit.precheck.steps_per_epoch import steps_per_epoch


@pytest.fixture(params=[tiny_docnn, tiny_bert, tiny_entities, tiny_words])
def make(request: pytest.FixtureRequest) -> Make:
    found: Make = request.param
    return found


def test_a_model_of_a_hub_is_not_asked_for(tmp_path: Path) -> None:
    assert steps_per_epoch(tiny_bert(tmp_path, "data.tokenizer_path=somebody/some-model")) is None
