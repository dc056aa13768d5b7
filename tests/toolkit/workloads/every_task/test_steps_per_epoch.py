"""Steps per epoch of our workloads' prepared data, with the tests of tests/toolkit/precheck."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.precheck.test_steps_per_epoch import (
    Make,
    test_looking_up_the_steps_imports_nothing_slow,  # noqa: F401
    test_the_steps_of_prepared_data_equal_those_of_training,  # noqa: F401
)
from tests.toolkit.workloads.entity_disambiguation.entity_files import tiny_entities
from tests.toolkit.workloads.spelling.spelling_files import tiny_words
from tests.toolkit.workloads.text_classification.tiny_texts import tiny_bert, tiny_docnn
from toolkit.precheck.steps_per_epoch import steps_per_epoch


@pytest.fixture(params=[tiny_docnn, tiny_bert, tiny_entities, tiny_words])
def make(request: pytest.FixtureRequest) -> Make:
    found: Make = request.param
    return found


def test_steps_per_epoch_are_unknown_for_a_tokenizer_on_a_hub(tmp_path: Path) -> None:
    assert steps_per_epoch(tiny_bert(tmp_path, "data.tokenizer_path=somebody/some-model")) is None
