"""All ranks must have the same data, even on one machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.support.ranks import in_ranks, joined
from toolkit.distributed.shared_folder import check_same_data
from toolkit.errors import DataError
from toolkit.system.world import World


def compare(world: World, folder: Path) -> None:
    with joined(world, folder) as group:
        check_same_data("the same", group)
        with pytest.raises(DataError, match=r"rank 1 on .* differ from those of rank 0"):
            check_same_data(f"in the order of rank {world.rank}", group)


def test_ranks_with_different_data_are_refused(tmp_path: Path) -> None:
    in_ranks(2, compare, tmp_path)
