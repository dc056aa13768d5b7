"""What killed ranks have started is killed too, and no other process group."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.patience import PATIENCE_S
from toolkit.files import write_json
from toolkit.launch.leftovers import end_leftovers
from toolkit.run.run_dir import RunDir

#: What a rank has started, and what that has started: they end when their standard input does.
WRAPPED = ["sh", "-c", "cat; true"]


@pytest.fixture
def started() -> Iterator[subprocess.Popen[bytes]]:
    environ = {**os.environ, "STK_NONCE": "here"}
    with subprocess.Popen(
        WRAPPED, env=environ, process_group=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdin.write(b"begun\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"begun\n"
        yield process
        process.stdin.close()


def record(run: RunDir, nonce: str, rank: int, **facts: object) -> None:
    path = run.process(nonce, rank)
    path.parent.mkdir(exist_ok=True)
    write_json(path, {"rank": rank, **facts})


def test_group_of_a_killed_rank_is_killed(run: RunDir, started: subprocess.Popen[bytes]) -> None:
    record(run, "here", 1, pid=started.pid)
    end_leftovers(run, "here", range(2))
    assert started.wait(PATIENCE_S) == -9
    # Its child has ended as well, or the pipe would stay open.
    assert started.stdout.read() == b""


@pytest.mark.parametrize("nonce, facts", [("here", {"ended": 12.0}), ("other", {"pid": None})])
def test_group_of_others_lives_on(
    run: RunDir, started: subprocess.Popen[bytes], nonce: str, facts: dict[str, object]
) -> None:
    """The rank has ended its group, or the group has the id of an earlier one."""
    record(run, nonce, 0, **{name: value or started.pid for name, value in facts.items()})
    end_leftovers(run, nonce, range(1))
    started.stdin.write(b"on\n")
    started.stdin.flush()
    assert started.stdout.readline() == b"on\n"
