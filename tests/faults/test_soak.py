"""Some interruptions at random moments. benchmarks/cluster/soak.py has the long version."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cluster.soak import Soak, show
from tests.tiers import first_quick


@pytest.mark.parametrize("count", first_quick([4, 8]))
def test_interruptions_at_random_moments_change_nothing(tmp_path: Path, count: int) -> None:
    tally = Soak(tmp_path, seed=20, epochs=6, say=print).interrupt(count)
    print(show(tally))
    assert sum(tally.interruptions.values()) >= count
    assert tally.is_clean, show(tally)
