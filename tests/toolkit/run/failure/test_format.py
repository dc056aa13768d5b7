"""The text of a failure for users."""

from __future__ import annotations

from toolkit.run.failure.format import format_failure
from toolkit.run.failure.records import failure_record


def test_out_of_memory_is_formatted_with_batch_and_memory() -> None:
    record = failure_record(
        "n", "out_of_memory", "CUDA out of memory", rank=3, host="w2", phase="forward", step=417
    )
    gpu = {"allocated_mb": 135000.0, "reserved_mb": 140000.0, "free_mb": 512.0, "total_mb": 143771.0}
    told = format_failure({
        **record,
        "gpu": {"index": 3, "name": "NVIDIA H200", "uuid": "GPU-12ab"},
        "batch": {"samples": 64, "tokens": 16000, "longest": 512, "micro_batches": 8},
        "memory": {"rss_mb": 3300.0, "rss_peak_mb": 3500.0, "limit_mb": 16384.0, "gpu": gpu},
        "advice": "Take less.",
    })  # fmt: skip
    assert told.splitlines() == [
        "error: CUDA out of memory",
        "  where        rank 3 on w2, GPU 3 (NVIDIA H200, GPU-12ab), in forward, after step 417",
        "  class        out_of_memory",
        "  batch        64 samples, 16,000 tokens, the longest 512 (one of 8 micro-batches of the step)",
        "  memory       this process 3.2 GB, at most 3.4 GB, its limit 16.0 GB",
        "  GPU memory   allocated 132 GB, reserved 137 GB, free 512 MB, of 140 GB",
        "  what to do   Take less.",
    ]


def test_batch_of_a_diverged_run_may_be_several_micro_batches() -> None:
    batch = {"samples": 14, "micro_batches": 8}
    shown = format_failure({"class": "diverged", "batch": batch})
    assert "14 samples (of the micro-batches without a finite loss; the step has 8)" in shown


def test_an_incomplete_record_is_formatted() -> None:
    assert format_failure({}).splitlines()[0] == "error: unknown"
    assert "boom" in format_failure({"message": "boom", "gpu": {}, "batch": None, "memory": {"gpu": None}})


def test_samples_without_lengths_are_formatted_without_tokens() -> None:
    batch = {"samples": 8, "tokens": 8, "longest": 1}
    assert "tokens" not in format_failure({"message": "boom", "batch": batch})


_TRACE = """\
  File "/runs/a/code/toolkit/training/loop.py", line 46, in train
  File "/runs/a/code/project/own.py", line 11, in step
  File "/venv/lib/python3.11/site-packages/torch/nn/module.py", line 3, in forward
  File "/usr/lib/python3.13t/runpy.py", line 4, in run
  File "/tmp/torchinductor_ann/cs/csscs.py", line 86, in call
  File "<frozen importlib._bootstrap>", line 5, in load
ValueError: bad
"""


def test_line_of_the_users_own_code_is_named() -> None:
    known = {"rank": 1, "host": "a", "phase": "forward", "step": 3, "traceback": _TRACE}
    assert "in forward, after step 3, at own.py:11\n" in format_failure({**known, "advice": "Correct it."})


def test_no_line_is_named_from_the_output_of_a_program() -> None:
    """It may show errors that the program handled."""
    assert "own.py" not in format_failure({"phase": "program", "traceback": _TRACE})
