"""ranks/NONCE.jsonl: the ranks of one attempt."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.files import read_json_lines
from toolkit.run.records.from_json import from_json
from toolkit.run.run_dir import RunDir


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRecord:
    """One rank; None for values that it did not record. `gpu` is the UUID of its GPU."""

    rank: int | None = None
    host: str = "unknown"
    device: str | None = None
    gpu: str | None = None
    cuda_visible_devices: str | None = None


def read_ranks(run: RunDir, nonce: str) -> list[RankRecord]:
    """The ranks of an attempt, by number; empty if it has recorded none."""
    found = (from_json(RankRecord, line) for line in read_json_lines(run.ranks(nonce)))
    return sorted((each for each in found if each.rank is not None), key=lambda each: each.rank or 0)


def hosts_of(run: RunDir, nonce: str) -> dict[int, str]:
    """The host of each rank of an attempt."""
    return {each.rank: each.host for each in read_ranks(run, nonce) if each.rank is not None}
