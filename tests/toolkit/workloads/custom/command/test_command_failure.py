"""Why a command has failed, by its exit status and the end of its output."""

from __future__ import annotations

import errno
import os
import socket
import traceback
from dataclasses import replace
from typing import Any

import pytest

from tests.toolkit.support.killed_worker import error_of_killed_worker
from toolkit.errors import CheckpointError
from toolkit.run.failure.classes import FAILURE_CLASSES, Policy
from toolkit.system.world import World
from toolkit.workloads.custom.command.failure import failure_of
from toolkit.workloads.custom.script import ranks

_TRACE = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    step()\n'
_TORCHRUN = _TRACE + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\n"
_IGNORED = "Exception ignored {} _Iterator.__del__>\n" + _TRACE + "AssertionError: a child\n"


def record(output: str, code: int = 1, world: World | None = None) -> dict[str, Any]:
    return failure_of(world or World.single(), code, output, None)


def test_earlier_lines_of_the_log_do_not_decide_the_class() -> None:
    found = record("W&B: Connection reset by peer, retrying\n" * 9 + _TRACE + "ValueError: labels differ\n")
    assert found["class"] == "exception"
    assert "ValueError: labels differ" in found["message"]
    assert "Connection" not in found["message"]


@pytest.mark.parametrize(
    "end, kind, shown",
    [
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried\n", "out_of_memory", "CUDA out of memory"),
        ("MemoryError\n", "out_of_memory", "MemoryError"),
        ("[rank0]: ModuleNotFoundError: No module named 'a'\n", "import", "No module named 'a'"),
        (
            "RuntimeError: DataLoader worker (pid 42) is killed by signal: Killed. \n",
            "oom_killed",
            "DataLoader worker",
        ),
        ("RuntimeError: Connection closed by peer\n", "peer_lost", "Connection closed"),
        ("NCCL.Trouble: failed\nncclRemoteError: a process has gone\n", "peer_lost", "Trouble: failed"),
        ("OSError: [Errno 28] No space left on device: 'a.pt'\n", "io", "'a.pt'"),
        ("SafetensorError: I/O error: Disk quota exceeded (os error 122)\n", "io", "I/O error"),
        (
            "RuntimeError: [enforce fail at inline_container.cc:672] . unexpected pos 64 vs 0\n",
            "io",
            "unexpected pos",
        ),
        (
            "toolkit.errors.CheckpointError: run.checkpoint(3) failed: No space left on device\n",
            "checkpoint",
            "run.checkpoint(3)",
        ),
        ("toolkit.errors.CheckpointError: run.checkpoint(3) failed: Input/output error\n", "io", "(3)"),
        ("my.errors.CheckpointError: Input/output error\n", "exception", "Input/output"),
        ("OSError: [Errno 116] Stale file handle: '/data/a'\n", "io", "'/data/a'"),
        ("OSError: [Errno 5] Input/output error\n", "io", "Input/output"),
        ("TimeoutError: [Errno 110] Connection timed out\n", "io", "timed out"),
        ("OSError: [Errno 12] Cannot allocate memory\n", "out_of_memory", "[Errno 12]"),
        # These do not pass by themselves.
        ("OSError: [Errno 98] Address already in use\n", "exception", "[Errno 98]"),
        ("ConnectionRefusedError: [Errno 111] Connection refused\n", "exception", "[Errno 111]"),
        ("OSError: [Errno 30] Read-only file system: '/data/a'\n", "exception", "'/data/a'"),
        (
            "torch.distributed.DistNetworkError: The server socket has failed to listen. port: 2, "
            "code: -98, name: EADDRINUSE, message: address already in use\n",
            "address_in_use",
            "port: 2",
        ),
        ("ValueError: no labels\nwandb: [Errno 98] Address already in use\n", "exception", "no labels"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'a'\n", "exception", "'a'"),
        ("socket.gaierror: [Errno -2] Name or service not known\n", "exception", "Name or"),
        ("AssertionError\n", "exception", "AssertionError"),
        ("RuntimeError: in state_dict for Net:\n\tsize of fc\n", "exception", "Net: size of fc"),
        ("my.models.BadShape: (3, 4)\nexpected (3, 5)\n", "exception", "BadShape: (3, 4)"),
        ("StopIteration\nwandb: synced\n", "exception", "StopIteration"),
    ],
)
def test_last_exception_decides_the_class_and_its_first_line_is_shown(
    end: str, kind: str, shown: str
) -> None:
    found = record(_TRACE + end)
    assert found["class"] == kind
    assert shown in found["message"]


def test_line_that_is_not_indented_below_an_error_is_not_shown_as_its_second_one() -> None:
    assert record(_TRACE + "KeyError: no such key:\nsaved at step 3\n")["message"].endswith("no such key:")


@pytest.mark.parametrize(
    "error",
    [
        "OSError: [Errno {0}] {1}: '/data/a'",
        "urllib.error.URLError: <urlopen error [Errno {0}] {1}>",
        "requests.exceptions.ConnectionError: HTTPConnectionPool(host='a', port=80): Max retries exceeded "
        "(Caused by NewConnectionError('Failed to establish a new connection: [Errno {0}] {1}'))",
    ],
)
@pytest.mark.parametrize(
    "number, may_pass",
    [
        (errno.EIO, True),
        (errno.ESTALE, True),
        (errno.ETIMEDOUT, True),
        (errno.EHOSTUNREACH, True),
        (errno.ENETUNREACH, True),
        (errno.ENETDOWN, True),
        (socket.EAI_AGAIN, True),
        (errno.EROFS, False),
        (errno.ECONNREFUSED, False),
        (errno.EACCES, False),
    ],
)
def test_error_of_a_disk_or_network_that_may_pass_starts_a_command_again(
    error: str, number: int, may_pass: bool
) -> None:
    kind = record(f"{_TRACE}{error.format(number, os.strerror(number))}\n")["class"]
    assert FAILURE_CLASSES[kind].policy is (Policy.RETRY if may_pass else Policy.STOP)


@pytest.mark.parametrize(
    "error, kind",
    [
        ("ConnectionResetError: [Errno 104] Connection reset by peer", "io"),
        ("ConnectionError: ('aborted', ConnectionResetError(104, 'Connection reset by peer'))", "io"),
        ("ConnectionError: ('aborted', BrokenPipeError(32, 'Broken pipe'))", "io"),
        ("httpx.WriteError: [Errno 32] Broken pipe", "io"),
        ("BrokenPipeError: [Errno 32] Broken pipe", "exception"),
    ],
)
def test_connection_that_breaks_means_a_lost_rank_only_among_several(error: str, kind: str) -> None:
    """A single process has lost a server, or a program that it has started."""
    assert record(f"{_TRACE}{error}\n")["class"] == kind
    assert record(f"{_TRACE}{error}\n", world=replace(World.single(), size=2))["class"] == "peer_lost"


@pytest.mark.parametrize("code", [-9, 137])
@pytest.mark.parametrize("is_oom, kind", [(False, "killed"), (True, "oom_killed")])
def test_child_that_has_lost_a_killed_command_is_not_the_cause(code: int, is_oom: bool, kind: str) -> None:
    output = _TRACE + "BrokenPipeError: [Errno 32] Broken pipe\n"
    found = failure_of(World.single(), code, output, None, is_oom=is_oom)
    assert (found["class"], "Broken" in found["message"]) == (kind, False)


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.EROFS])
def test_checkpoint_that_a_host_cannot_write_starts_a_command_again(number: int) -> None:
    error = f"toolkit.errors.CheckpointError: run.checkpoint(3) failed: {os.strerror(number)}"
    assert FAILURE_CLASSES[record(f"{_TRACE}{error}\n")["class"]].policy is Policy.RETRY


@pytest.mark.parametrize(
    "package, kind", [("toolkit.errors.", "input"), ("pandas.errors.", "exception"), ("", "exception")]
)
def test_only_errors_of_the_toolkit_are_wrong_input(package: str, kind: str) -> None:
    assert record(f"{_TRACE}{package}DataError: No numeric types to aggregate\n")["class"] == kind


def errors_of_two_ranks(patch: pytest.MonkeyPatch, number: int | None) -> list[str]:
    """What two ranks print if the save of the first one fails."""
    sent: list[float] = []

    def largest(own: float) -> list[float]:
        sent.append(own)
        return [max(sent)]

    patch.setattr(ranks, "largest", largest)
    failed, other = (ranks.SharedError("run.checkpoint(3) failed") for _ in range(2))
    with failed:
        raise OSError("no disk") if number is None else OSError(number, os.strerror(number), "/run")
    printed = []
    for each in (failed, other):
        with pytest.raises(CheckpointError) as raised:
            each.raise_together()
        printed.append("".join(traceback.format_exception(raised.value)))
    return printed


@pytest.mark.parametrize("launcher", ["", _TORCHRUN])
@pytest.mark.parametrize("other_is_first", [True, False])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EACCES, None])
def test_save_that_fails_for_good_on_one_rank_stops_the_run(
    monkeypatch: pytest.MonkeyPatch, number: int | None, other_is_first: bool, launcher: str
) -> None:
    """Each rank and each host records the class, and the others may be the first."""
    failed, other = errors_of_two_ranks(monkeypatch, number)
    output = (other + failed if other_is_first else failed + other) + launcher
    for printed in (failed, other, output):
        assert record(printed)["class"] == "checkpoint"


def test_save_that_fails_on_one_rank_for_now_is_recorded_as_that_of_this_rank(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also if its record comes second."""
    classes = [record(each)["class"] for each in errors_of_two_ranks(monkeypatch, errno.EIO)]
    assert classes == ["io", "peer_lost"]


def test_traceback_after_an_unfinished_progress_bar_is_found() -> None:
    found = record(f" 0/10\r 50%|##   | 5/10 [00:00<00:00]{_TRACE}ValueError: two lines\nof text\n")
    assert "ValueError: two lines" in found["message"]
    assert "no traceback" not in found["advice"]


def test_colours_of_a_traceback_hide_neither_class_nor_message() -> None:
    plain = f"{_TRACE}torch.OutOfMemoryError: CUDA out of memory\n"
    coloured = plain.replace("torch.OutOfMemoryError", "\x1b[1;35mtorch.OutOfMemoryError\x1b[0m")
    found, expected = record(coloured), record(plain)
    for key in ("class", "message", "traceback"):
        assert found[key] == expected[key]


def test_title_without_an_end_hides_no_lines() -> None:
    assert record(f"\x1b]0;title\n{_TRACE}ValueError: bad\n\x07")["message"].endswith("ValueError: bad")


def test_last_error_of_chained_exceptions_decides_the_class() -> None:
    middle = "\nDuring handling of the above exception, another exception occurred:\n\n"
    found = record(_TRACE + "OSError: Broken pipe\n" + middle + _TRACE + "KeyError: 'lr'\n")
    assert (found["class"], found["message"].endswith("KeyError: 'lr'")) == ("exception", True)


@pytest.mark.parametrize("launcher", ["", _TORCHRUN])
def test_killed_worker_of_a_data_loader_decides_the_class_while_its_batch_is_awaited(launcher: str) -> None:
    found = record("".join(traceback.format_exception(error_of_killed_worker())) + launcher)
    assert (found["class"], "is killed by signal" in found["message"]) == ("oom_killed", True)


def raised(error: Exception) -> Exception:
    """An error with a traceback."""
    try:
        raise error
    except Exception as found:
        return found


def test_exception_group_is_shown_instead_of_its_members() -> None:
    group = raised(ExceptionGroup("two", [raised(ValueError("a")), raised(TypeError("b"))]))
    found = record("".join(traceback.format_exception(group)))
    assert found["message"].endswith("ExceptionGroup: two (2 sub-exceptions)")
    assert "no traceback" not in found["advice"]


@pytest.mark.parametrize("consequence", ["Broken pipe", "ncclSystemError: System call"])
def test_failure_of_torchrun_is_that_of_its_failed_process(consequence: str) -> None:
    lost = "".join(f"[rank1]: {line}\n" for line in (_TRACE + f"RuntimeError: {consequence}").splitlines())
    found = record(_TRACE + "ValueError: labels\n" + lost + _TORCHRUN)
    assert (found["class"], found["message"].endswith("ValueError: labels")) == ("exception", True)


def test_list_of_failed_processes_by_torchrun_does_not_hide_their_error() -> None:
    found = record(_TRACE + "ModuleNotFoundError: No module named 'a'\n" + _TORCHRUN + "  exitcode: 1\n" * 56)
    assert (found["class"], found["message"].endswith("'a'")) == ("import", True)


@pytest.mark.parametrize("steps", [3, 99])
@pytest.mark.parametrize("end", [_TRACE + "ValueError: bad label\n", "no labels are left\n"])
def test_error_handled_in_a_process_of_torchrun_does_not_decide_the_class(steps: int, end: str) -> None:
    handled = _TRACE + "TimeoutError: [Errno 110] Connection timed out\n"
    found = record(handled + "a step\n" * steps + end + _TORCHRUN)
    # Without a traceback after it, an error just before the end may be the cause.
    is_cause = steps == 3 and "bad label" not in end
    assert found["class"] == ("io" if is_cause else "exception")


@pytest.mark.parametrize("ignored", ["", _IGNORED.format("in: <function close")], ids=["alone", "ignored"])
def test_error_handled_long_before_does_not_decide_the_class(ignored: str) -> None:
    """Even if Python ignored another error after it."""
    handled = _TRACE + "OSError: [Errno 116] Stale file handle\n"
    found = record(handled + ignored + "#500 loss 0.31\n" * 99 + "no labels are left\n", code=3)
    assert found["class"] == "exception"
    assert found["message"] == "the command ended with status 3: no labels are left"


def test_silent_failure_is_reported_by_its_exit_status() -> None:
    assert record("", code=3)["message"] == "the command ended with status 3"


def test_cause_of_an_abort_is_found_anywhere_in_the_log() -> None:
    found = record("Watchdog caught collective operation timeout\n" + "  File x\n" * 99, code=-6)
    assert found["class"] == "communication"


def test_space_that_a_save_lacked_before_does_not_explain_an_abort() -> None:
    found = record("lines wait: No space left on device\nncclSystemError: System call\n", code=-6)
    assert found["class"] == "communication"


def test_advice_for_a_command_names_no_key_of_train() -> None:
    assert "train." not in record(_TRACE + "MemoryError\n")["advice"]


@pytest.mark.parametrize(
    "output, code",
    [
        ('Fatal Python error: Bus error\n\nThread 0x1 (most recent call first):\n  File "a.py"\n', -7),
        ("╭─── Traceback (most recent call last) ───╮\n│ train.py:3 in <module>                  │\n", 1),
    ],
    ids=["faulthandler", "rich"],
)
def test_traceback_of_another_form_counts_as_one(output: str, code: int) -> None:
    assert "no traceback" not in record(output, code)["advice"]


@pytest.mark.parametrize("output", ["a step\n", "raised from f at b.cpp:1 (most recent call first):\n"])
@pytest.mark.parametrize("code", [3, -11])
def test_advice_says_that_there_is_no_traceback(code: int, output: str) -> None:
    advice = record(output, code)["advice"]
    assert "no traceback" in advice
    assert ("FAULTHANDLER" in advice) == (code < 0)


def test_frames_of_cpp_below_an_error_do_not_hide_it_from_torchrun() -> None:
    frames = "".join(f"frame #{number}: c10::Error::Error() + 0x57 (libc10.so)\n" for number in range(45))
    found = record(
        _TRACE
        + "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\n"
        + frames
        + _TORCHRUN
    )
    assert (found["class"], "uncorrectable ECC" in found["message"]) == ("device", True)


@pytest.mark.parametrize("prefix", ["\x1b[34m\x1b[1mwandb\x1b[0m: ", "COMET INFO: "])
def test_summary_of_a_tracker_below_an_error_does_not_hide_it(prefix: str) -> None:
    found = record(f"{_TRACE}KeyError: 'labels'\n" + f"{prefix} loss 0.31\n" * 40)
    assert found["message"] == "the command ended with status 1: KeyError: 'labels'"


def test_lines_of_a_tracker_before_the_end_count_as_lines_after_a_handled_error() -> None:
    handled = _TRACE + "OSError: [Errno 116] Stale file handle\n"
    found = record(handled + "wandb: loss 0.31\n" * 40 + "no labels are left\nwandb: synced\n")
    assert (found["class"], found["message"].endswith(": no labels are left")) == ("exception", True)


@pytest.mark.parametrize("said", ["in: <function", "while calling deallocator <function"])
def test_error_that_python_ignores_at_its_end_is_not_the_cause(said: str) -> None:
    handled = _TRACE + "OSError: [Errno 116] Stale file handle\n"
    found = record(handled + _IGNORED.format(said) + _TORCHRUN)
    assert (found["class"], "Stale" in found["message"]) == ("io", True)
