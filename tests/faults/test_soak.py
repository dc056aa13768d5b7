"""The soak's short version: some interruptions at random moments. benchmarks/soak.py has the long one."""

from __future__ import annotations

from pathlib import Path

from benchmarks.soak import Soak, show


def test_a_dozen_interruptions_at_random_moments_change_nothing(tmp_path: Path) -> None:
    tally = Soak(tmp_path, seed=20, epochs=6, say=print).interrupt(12)
    print(show(tally))
    assert sum(tally.interruptions.values()) >= 12
    assert tally.is_clean, show(tally)
