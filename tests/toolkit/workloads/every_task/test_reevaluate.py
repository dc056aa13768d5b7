"""Runs of our workloads are scored again, with the tests of tests/toolkit/analysis."""

from __future__ import annotations

import pytest

from tests.tiers import first_quick
from tests.toolkit.analysis.test_reevaluate import (
    Make,
    test_another_file_is_read_with_the_runs_labels_and_tokens,  # noqa: F401
    test_evaluation_of_the_runs_own_splits_repeats_its_final_scores,  # noqa: F401
    trained,  # noqa: F401
)
from tests.toolkit.workloads.text_classification.tiny_texts import tiny_bert, tiny_docnn

pytestmark = pytest.mark.usefixtures("threads_restored")
#: By what is special of their data.
SAMPLES = {"words": tiny_docnn, "pretrained and folded": tiny_bert}


@pytest.fixture(scope="module", params=first_quick(SAMPLES.values()), ids=list(SAMPLES))
def make(request: pytest.FixtureRequest) -> Make:
    found: Make = request.param
    return found
