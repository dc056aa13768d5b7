"""The picture of docs/runs/logs.md: a rank ran out of memory, as a terminal shows it."""

from __future__ import annotations

import io
from pathlib import Path

from drawing import save, terminal_page
from rich.console import Console

from slurm.runs.logs.rendering import failure_view
from toolkit.run.failure.records import failure_record
from toolkit.training.attempt.failure_context import memory_advice

_MESSAGE = (
    "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. GPU 0 has a total capacity of 79.14 "
    "GiB of which 1.02 GiB is free."
)
_LOG = """\
2026-03-02 01:58:40,118 INFO rank 3 of 4 on node07, process 41522
2026-03-02 02:11:07,902 ERROR rank 3 failed
Traceback (most recent call last):
  File "…/code/toolkit/training/loop.py", line 139, in _micro_batch
    state.scaler.scale(loss.total * 0.0 if idle else loss.total).backward()
  …
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. …
"""


def make(pictures: Path) -> None:
    """Store logs.png."""
    console = Console(record=True, file=io.StringIO(), width=100, force_terminal=True, highlight=False)
    console.print("[bold green]$[/] stk logs bert-spam")
    console.print(failure_view(example()))
    console.print(f"\n{_LOG}", end="", markup=False)
    console.print("(rank 3 failed first; --rank 0 shows rank 0, --rank all shows all)")
    save(terminal_page(console), pictures / "terminal" / "logs.png", width=1000, height=700)


def example() -> dict[str, object]:
    """Return the failure record of a rank whose GPU is out of memory."""
    record = failure_record(
        "871203.0.1", "out_of_memory", _MESSAGE, rank=3, host="node07", phase="backward", step=1417
    )
    batch = {"samples": 16, "tokens": 7402, "longest": 512, "micro_batches": 8}
    gpu = {"allocated_mb": 73100, "allocated_peak_mb": 76790, "reserved_mb": 78620, "free_mb": 1044}
    gpu |= {"total_mb": 81040, "others_mb": 1376}
    memory = {"rss_mb": 4310, "rss_peak_mb": 5122, "limit_mb": 65536, "gpu": gpu}
    return {
        **record,
        "gpu": {"index": 3, "name": "NVIDIA A100-SXM4-80GB", "uuid": "GPU-5d1f0b7a"},
        "batch": batch,
        "memory": memory,
        "advice": memory_advice({"batch": batch, "memory": memory}, accumulation=1),
    }
