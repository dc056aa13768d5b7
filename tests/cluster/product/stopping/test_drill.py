"""stk drill on a real cluster: everything that an ordinary user can cause, and the verdict."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.cluster.product.user import User, Users

#: `stk` with a drill that waits less.
_SHORTER = """
import sys
from slurm.cli import main
from slurm.drill import cluster
cluster.TIME_LIMIT_MIN = 2
cluster._PACE = "slow 0.5 at=data step=0-100000 rank=0"
cluster._ASK_SLURM_S = 1.0
sys.exit(main(sys.argv[1:]))
"""
GRACEFUL = ("asked to stop", "requeued", "preempted", "out of time")


@pytest.fixture(scope="module")
def drilled(users: Users) -> tuple[User, Any]:
    """What the drill of a user who brings no experiment says."""
    user = users.user("drill")
    command = ("drill", "--cluster", "slurm", "--json")
    result = user.run(sys.executable, "-c", _SHORTER, *command, check=False, timeout_s=900)
    print(result.stdout, result.stderr)
    return user, {**json.loads(result.stdout), "code": result.returncode}


pytestmark = [pytest.mark.timeout(1200), pytest.mark.slow]


def test_drilled_run_resumes_each_time_with_the_same_bytes(drilled: tuple[User, Any]) -> None:
    _, told = drilled
    assert [row for row in told["rows"] if not row["same_bytes"] or row["fault"]] == []
    assert (told["verdict"], told["cluster"], told["code"]) == ("passed", "slurm", 0)


def test_drill_tries_every_interruption_that_a_user_may_cause(drilled: tuple[User, Any]) -> None:
    """A partition above the preemptible ones is there, so the preemption is a real one."""
    _, told = drilled
    assert [row["what"].partition(" (")[0] for row in told["rows"]] == [
        "asked to stop",
        "requeued",
        "all ranks killed",
        "preempted, GraceTime 10 s",
        "out of time",
    ]
    assert told["not_tried"] == ["lost hosts and cut networks: only an administrator can cause them"]


def test_only_a_kill_costs_steps(drilled: tuple[User, Any]) -> None:
    _, told = drilled
    lost = {row["what"]: row["lost_steps"] for row in told["rows"]}
    assert all(steps == 0 for what, steps in lost.items() if what.startswith(GRACEFUL)), lost
    assert lost["all ranks killed (SIGALRM)"] <= 6


def test_drill_reports_the_received_signals(drilled: tuple[User, Any]) -> None:
    _, told = drilled
    signals = {row["what"].partition(" ")[0]: row["signals"] for row in told["rows"]}
    assert "TERM" in signals["asked"]
    assert "TERM" in signals["requeued"]
    assert "TERM" in signals["preempted,"]
    assert signals["all"] == []


def test_drill_leaves_no_folders_and_no_jobs(drilled: tuple[User, Any]) -> None:
    user, _ = drilled
    assert list((user.runs / "drills").iterdir()) == []
    left = user.run("squeue", "--noheader", "--states=all", "--format=%Z %T").stdout.splitlines()
    ended = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "PREEMPTED")
    assert [line for line in left if str(user.home) in line and not line.endswith(ended)] == []
