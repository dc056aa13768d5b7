"""A rank that fails leaves at once, although others are in a collective of NCCL; they are ended soon."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest
import torch
import torch.distributed as dist

from tests.toolkit.gpu.collectives import pretended_gpu
from tests.toolkit.support.ranks import in_ranks
from toolkit.config.schema import Train
from toolkit.distributed import process_group
from toolkit.files import append_json_line
from toolkit.launch.launcher import _grace_s
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World


def times_destroyed(world: World, folder: Path, fails: bool) -> int:
    """How often a rank on a GPU has destroyed its group when it leaves."""
    with pretended_gpu(), patch.object(dist, "destroy_process_group") as destroyed:
        try:
            with process_group.join(RunDir(folder), world, Train()):
                if fails:
                    raise ValueError
        except ValueError:
            pass
        # The ranks of this test leave together.
        dist.all_reduce(torch.zeros(1))
    return destroyed.call_count


def test_only_a_rank_without_an_error_destroys_a_group_of_nccl(tmp_path: Path) -> None:
    """It would wait for the others, which may be in a collective that never ends."""
    assert in_ranks(2, times_destroyed, tmp_path / "failing", True) == [0, 0]
    assert in_ranks(2, times_destroyed, tmp_path / "finishing", False) == [1, 1]


@pytest.mark.parametrize("gpu, expected", [("GPU-1", 3.0), (None, 20.0)])
def test_ranks_that_use_nccl_get_less_time_to_end_after_a_failure(
    gpu: str | None, expected: float, run: RunDir
) -> None:
    run.ranks("nonce").parent.mkdir()
    for rank in range(2):
        append_json_line(run.ranks("nonce"), {"rank": rank, "host": "w", "gpu": gpu})
    assert _grace_s(run, "nonce", [-9, None]) == expected
