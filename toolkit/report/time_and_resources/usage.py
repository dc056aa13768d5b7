"""The ranks' use of their machines, as a table."""

from __future__ import annotations

from toolkit.monitoring.usage.values import GpuUsage
from toolkit.report import formats
from toolkit.report.blocks import Table, table
from toolkit.report.model import RunSummary

TITLE = "Memory, CPUs and GPUs"
NONE = (
    "The use of memory, CPUs and GPUs was not recorded: the run is older than this feature, or too short. "
    "There is no advice on them."
)


def usage_table(summary: RunSummary) -> Table:
    """Return one row for each rank of the newest attempt: memory, CPUs and GPU."""
    newest = max(summary.usage, key=lambda rank: rank.time)
    ranks = [rank for rank in summary.usage if rank.nonce == newest.nonce]
    gpus = any(rank.gpu for rank in ranks)
    head = ["rank", "host", "peak memory", "CPUs busy", "of CPUs"]
    if gpus:
        head += ["GPU", "GPU busy", "GPU memory", "of its"]
    rows = [
        [
            str(rank.rank),
            rank.host,
            formats.size_mb(rank.rss_peak_mb),
            formats.decimal(rank.cpu_percent_mean / 100),
            str(rank.cpus),
            *(_gpu(rank.gpu) if gpus else ()),
        ]
        for rank in ranks
    ]
    note = "Means over the newest attempt; memory is its peak. " + (
        "A GPU's figures include other processes on it." if gpus else ""
    )
    # The person who requested the GPU knows its kind.
    optional = (5, 8, 4) if gpus else ()
    return table(TITLE, head, rows, texts=2, optional=optional, note=note.strip())


def _gpu(gpu: GpuUsage | None) -> list[str]:
    if gpu is None:
        return [formats.NOTHING] * 4
    return [
        formats.one_line(gpu.name, 24),
        formats.share(gpu.utilization_mean, 100),
        formats.size_mb(gpu.memory_peak_mb),
        formats.size_mb(gpu.memory_total_mb),
    ]
