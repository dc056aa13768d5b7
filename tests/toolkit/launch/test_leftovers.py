"""What killed ranks have started may save, and is ended; no other process group is."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.patience import PATIENCE_S
from toolkit.files import write_json
from toolkit.launch import leftovers
from toolkit.launch.leftovers import end_leftovers
from toolkit.run.run_dir import RunDir

#: What a rank has started, and what that has started: they end when their standard input does.
WRAPPED = "trap '' TERM; cat; true"
#: A script that saves at SIGTERM.
SCRIPT = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(print("saved")))
print(input(), flush=True)
input()
"""


@contextmanager
def group(text: str) -> Iterator[subprocess.Popen[bytes]]:
    environ = {**os.environ, "STK_NONCE": "here"}
    with subprocess.Popen(
        ["sh", "-c", text], env=environ, process_group=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdin.write(b"begun\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"begun\n"
        yield process
        process.stdin.close()


@pytest.fixture
def started() -> Iterator[subprocess.Popen[bytes]]:
    with group(WRAPPED) as process:
        yield process


def record(run: RunDir, nonce: str, rank: int, **facts: object) -> None:
    path = run.process(nonce, rank)
    path.parent.mkdir(exist_ok=True)
    write_json(path, {"rank": rank, **facts})


@pytest.mark.parametrize("is_urgent", [True, False])
def test_group_of_a_killed_rank_is_killed(
    run: RunDir, started: subprocess.Popen[bytes], is_urgent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a second Ctrl-C, or when its time is over."""
    monkeypatch.setattr(leftovers, "_SAVE_S", PATIENCE_S if is_urgent else 0.0)
    record(run, "here", 1, pid=started.pid)
    end_leftovers(run, "here", range(2), is_urgent=lambda: is_urgent)
    assert started.wait(PATIENCE_S) == -9
    # Its child has ended as well, or the pipe would stay open.
    assert started.stdout.read() == b""


@pytest.mark.parametrize(
    "text, printed",
    [
        (f"{shlex.join([sys.executable, '-c', SCRIPT])}; true", b"saved\n"),
        ("trap 'echo again' TERM; cat", b""),
    ],
    ids=["a script behind a wrapper", "the first process"],
)
def test_process_of_a_group_may_save_and_is_not_asked_twice(run: RunDir, text: str, printed: bytes) -> None:
    """The kernel has sent SIGTERM to the first process."""
    with group(text) as process:
        record(run, "here", 1, pid=process.pid)
        end_leftovers(run, "here", range(2), is_urgent=lambda: False)
        assert process.stdout.read() == printed


@pytest.mark.parametrize("nonce, facts", [("here", {"ended": 12.0}), ("other", {"pid": None})])
def test_group_of_others_lives_on(
    run: RunDir, started: subprocess.Popen[bytes], nonce: str, facts: dict[str, object]
) -> None:
    """The rank has ended its group, or the group has the id of an earlier one."""
    record(run, nonce, 0, **{name: value or started.pid for name, value in facts.items()})
    end_leftovers(run, nonce, range(1), is_urgent=lambda: True)
    started.stdin.write(b"on\n")
    started.stdin.flush()
    assert started.stdout.readline() == b"on\n"
