"""ranks/NONCE.jsonl: the ranks of an attempt; of several if a launcher, such as torchrun, reuses a nonce."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.files import read_json_lines
from toolkit.run.records.from_json import from_json
from toolkit.run.run_dir import RunDir


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRecord:
    """One rank; None for values that it did not record. `gpu` is the UUID of its GPU."""

    attempt: int | None = None
    rank: int | None = None
    host: str = "unknown"
    device: str | None = None
    gpu: str | None = None
    usable_gpus: int | None = None
    cuda_visible_devices: str | None = None


def read_ranks(run: RunDir, nonce: str, attempt: int | None = None) -> list[RankRecord]:
    """The ranks of an attempt, by number; empty if it has recorded none.

    attempt   the number of the attempt; None: the newest one with this nonce that has recorded ranks
    """
    found = [from_json(RankRecord, line) for line in read_json_lines(run.ranks(nonce))]
    if attempt is None:
        attempt = max((each.attempt for each in found if each.attempt is not None), default=None)
    # Earlier versions did not record the attempt.
    of_attempt = (each for each in found if each.rank is not None and each.attempt in (None, attempt))
    return sorted(of_attempt, key=lambda each: each.rank or 0)


def hosts_of(run: RunDir, nonce: str, attempt: int | None = None) -> dict[int, str]:
    """The host of each rank of an attempt, found as by read_ranks."""
    return {each.rank: each.host for each in read_ranks(run, nonce, attempt) if each.rank is not None}
