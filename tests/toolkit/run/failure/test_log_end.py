"""Recorded ends of logs of processes that a library aborted: each means a class of failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.run.failure.log_end import first_cause, last_words
from toolkit.run.run_dir import RunDir

STAMP = "[rank1]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:"
TIMED_OUT = (
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=4661, "
    "NumelOut=466119168, Timeout(ms)=600000) ran for 600060 ms before timing out."
)


def thrown(words: str, kind: str = "c10::DistBackendError") -> str:
    """What torch's watchdog says of an error, and the C++ runtime after it."""
    what = f"[PG ID 0 PG GUID 0 Rank 1] Process group watchdog thread terminated with exception: {words}"
    return (
        f"{STAMP}1896] {what}\n"
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below "
        "might be incorrect.\n"
        f"terminate called after throwing an instance of '{kind}'\n  what():  {what}\n"
        "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7f5a9616c1b6 in libc10.so)\n"
        'Fatal Python error: Aborted\n\nThread 0x00007f (most recent call first):\n  File "loop.py", line 1\n'
    )


TIME_OUT = (
    f"{STAMP}607] [Rank 1] {TIMED_OUT}\n"
    f"{STAMP}488] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA "
    "kernels, subsequent GPU operations might run on corrupted/incomplete data.\n"
    f"{STAMP}494] To avoid data inconsistency, we are taking the entire process down.\n" + thrown(TIMED_OUT)
)

#: Of Python's faulthandler.
FAULT = (
    "Fatal Python error: Segmentation fault\n\n"
    'Current thread 0x00007f (most recent call first):\n  File "mine.py", line 29 in step\n\n'
    "Extension modules: numpy._core._multiarray_umath (total: 1)\n"
)

ENDS = {
    "fault": (FAULT, "segfault"),
    "time-out": (TIME_OUT, "communication"),
    "monitor": (
        "F1124 09:00:00 ProcessGroupNCCL.cpp:1434] [PG 0 Rank 1] Terminating the process after attempting to "
        "dump debug info, due to ProcessGroupNCCL watchdog hang.\n",
        "communication",
    ),
    "system": (
        thrown(
            "NCCL error in: ProcessGroupNCCL.cpp:2251, unhandled system error (run with NCCL_DEBUG=INFO for "
            "details), NCCL version 2.27.5\nncclSystemError: System call (e.g. socket, malloc) or external "
            "library call failed or device error.\nLast error:\nsocketProgress: Connection timed out"
        ),
        "communication",
    ),
    "peer": (
        thrown(
            "NCCL error: remote process exited or there was a network error\n"
            "ncclRemoteError: A call failed possibly due to a network error or a remote "
            "process exiting prematurely."
        ),
        "peer_lost",
    ),
    "ecc": (thrown("CUDA error: uncorrectable ECC error encountered", "c10::AcceleratorError"), "device"),
    "nvlink": (
        thrown("CUDA error: Invalid access of peer GPU memory over nvlink or a hardware error"),
        "device",
    ),
    "bus": (thrown("Cuda failure 'GPU has fallen off the bus'") + thrown(TIMED_OUT), "device"),
    "assertion": (
        "../aten/src/ATen/native/cuda/Indexing.cu:1422: indexSelectLargeIndex: block: [3,0,0], "
        "thread: [32,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
        + thrown("CUDA error: device-side assert triggered", "c10::AcceleratorError"),
        "exception",
    ),
    "access": (thrown("CUDA error: an illegal memory access was encountered"), "exception"),
    "memory": (
        thrown(
            "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n"
            "Cuda failure 2 'out of memory'"
        ),
        "out_of_memory",
    ),
}


@pytest.mark.parametrize("text, kind", ENDS.values(), ids=ENDS)
def test_the_end_of_a_log_gives_the_failure_class(text: str, kind: str, tmp_path: Path) -> None:
    log = tmp_path / "rank.log"
    log.write_text("step 1\n" * 50_000 + text)
    found = last_words(log)
    assert found.kind == kind
    assert found.line in text


@pytest.mark.parametrize(
    "text",
    [
        "",
        # Told and survived: the process has ended of something else.
        "RuntimeError: CUDA error: out of memory, trying a smaller batch\n",
        "terminate called after throwing an instance of 'std::bad_alloc'\n",
        # Of a child: this process went on.
        f"{FAULT}2026-11-22 14:13:36,238 INFO saved step 7\n",
    ],
)
def test_a_log_without_an_abort_or_a_cause_gives_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "rank.log").write_text(text)
    assert last_words(tmp_path / "rank.log") is None
    assert last_words(tmp_path / "none.log") is None


def test_the_first_cause_is_found_among_the_logs_of_several_ranks(run: RunDir) -> None:
    run.logs.mkdir()
    for rank, name in enumerate(("time-out", "peer", "ecc", "time-out")):
        run.log("n", rank).write_text(ENDS[name][0])
    found = first_cause(run, "n", dict.fromkeys(range(5)))
    assert (found[0], found[1].kind) == (2, "device")
    assert first_cause(run, "other", {0: None}) is None
