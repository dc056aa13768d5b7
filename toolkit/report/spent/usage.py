"""What the ranks took of their machines, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.report import formats
from toolkit.report.sheets import Sheet, sheet
from toolkit.report.values import RunSummary
from toolkit.usage.values import GpuUsage, RankUsage

NONE = (
    "No use of memory, CPUs and GPUs was recorded: the run is older than such records, or too short for one. "
    "So there is no advice on them."
)


def newest(usage: Sequence[RankUsage]) -> list[RankUsage]:
    """Return the ranks of the start that was measured last."""
    if not usage:
        return []
    nonce = max(usage, key=lambda rank: rank.time).nonce
    return [rank for rank in usage if rank.nonce == nonce]


def usage_sheet(summary: RunSummary) -> Sheet:
    """Return one row for each rank of the newest start: memory, CPUs and GPU."""
    ranks = newest(summary.usage)
    gpus = any(rank.gpu for rank in ranks)
    head = ["rank", "host", "peak memory", "CPUs busy", "of CPUs"]
    if gpus:
        head += ["GPU", "GPU busy", "GPU memory", "of its"]
    rows = [_row(rank, gpus) for rank in ranks]
    note = "Means over the newest start; memory is its peak. " + (
        "A GPU's figures are of the whole GPU, whoever uses it." if gpus else ""
    )
    # The kind of GPU is known to who asked for it.
    optional = (5, 8, 4) if gpus else ()
    return sheet("Memory, CPUs and GPUs", head, rows, texts=2, optional=optional, note=note.strip())


def _row(rank: RankUsage, gpus: bool) -> list[str]:
    cells = [
        str(rank.rank),
        rank.host,
        formats.memory(rank.rss_peak_mb),
        formats.decimal(rank.cpu_percent_mean / 100),
        str(rank.cpus),
    ]
    return cells + (_gpu(rank.gpu) if gpus else [])


def _gpu(gpu: GpuUsage | None) -> list[str]:
    if gpu is None:
        return [formats.NOTHING] * 4
    busy = formats.share(gpu.utilization_mean, 100)
    return [
        formats.one_line(gpu.name, 24),
        busy,
        formats.memory(gpu.memory_peak_mb),
        formats.memory(gpu.memory_total_mb),
    ]
