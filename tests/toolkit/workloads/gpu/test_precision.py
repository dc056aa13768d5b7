"""Every task of our workloads in half precision."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.gpu.test_precision import check_half_precision
from tests.toolkit.workloads.every_task.test_task_contract import MODELS, SAMPLES


@pytest.mark.parametrize("kind", MODELS)
def test_every_task_learns_in_half_precision(kind: str, tmp_path: Path) -> None:
    check_half_precision(SAMPLES[kind](tmp_path))
