"""Loading a pretrained classifier executes no code of its folder, and gives weights to train."""

from __future__ import annotations

import pytest

from tests.toolkit.nlp.test_foreign_folders import (
    Load,
    answers_yes,  # noqa: F401
    bert,  # noqa: F401
    folder,  # noqa: F401
    proof,  # noqa: F401
    test_a_model_defined_by_custom_code_is_refused,  # noqa: F401
    test_custom_code_beside_a_known_model_is_not_executed,  # noqa: F401
    test_pickled_weights_are_refused_without_being_opened,  # noqa: F401
    test_weights_in_half_precision_are_loaded_in_single_precision,  # noqa: F401
)
from toolkit.workloads.text_classification.config import Pretrained as Config
from toolkit.workloads.text_classification.models.pretrained import Pretrained


@pytest.fixture
def load() -> Load:
    return lambda path: Pretrained(Config(path=str(path)), labels=("a", "b"), pad_id=0)
