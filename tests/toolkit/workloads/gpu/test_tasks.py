"""Every task of our workloads on a pretended GPU, with the tests of tests/toolkit/gpu."""

from __future__ import annotations

import pytest

from tests.toolkit.gpu.test_tasks import (
    Make,
    device,  # noqa: F401
    experiment,  # noqa: F401
    task,  # noqa: F401
    test_a_step_synchronizes_at_most_as_often_as_its_batch_and_the_loop,  # noqa: F401
    test_batch_synchronizes_as_often_as_declared,  # noqa: F401
    test_loss_and_gradients_equal_those_of_the_cpu,  # noqa: F401
    test_scores_equal_those_of_the_cpu,  # noqa: F401
)
from tests.toolkit.workloads.every_task.test_task_contract import MODELS, SAMPLES

#: Its loss takes weights of classes to the device.
BALANCED = pytest.param("text_classification, balanced classes", marks=pytest.mark.slow)
#: Other tasks have no waits. transformers asks each encoder's mask whether there is padding.
WAITS_OF_A_BATCH = {
    "entity_disambiguation": 2,
    "entity_disambiguation, cached vectors, steps of tokens": 1,
    "entity_disambiguation, co-mention": 1,
    "text_classification, pretrained and folded": 1,
}


@pytest.fixture(scope="module", params=[*MODELS, BALANCED])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def make(kind: str) -> Make:
    return SAMPLES[kind]


@pytest.fixture(scope="module")
def waits_of_a_batch(kind: str) -> int:
    return WAITS_OF_A_BATCH.get(kind, 0)
