"""Resources of a job of one task: how many GPUs it asks for."""

from __future__ import annotations

from typing import Any

import pytest

from slurm.config.resources import Resources
from slurm.submission.batch.job_options import components
from slurm.submission.batch.single_task import single_task, with_one_gpu


@pytest.mark.parametrize(
    "given, asked",
    [
        ({"gpus": 4}, {"gpus": "1"}),
        ({"gpus": "a100:2,v100:3"}, {"gpus": "a100:1"}),
        ({"gpus": None}, {}),
        ({"gpus": False}, {}),
        ({"gpus_per_socket": "a100:2", "hint": "compute_bound"}, {"gpus": "a100:1", "hint": "compute_bound"}),
    ],
)
def test_options_of_sbatch_ask_for_one_gpu(given: dict[str, Any], asked: dict[str, Any]) -> None:
    resources = Resources(sbatch=given)
    (found,) = components(single_task(resources, **with_one_gpu(resources)))
    assert found.options == {"nodes": 1, "ntasks-per-node": 1, **asked}
