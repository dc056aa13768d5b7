"""On the real cluster: who watches a run brings it back from the queue, and asks Slurm rarely."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.cluster.product.user import User, slowly, starts
from tests.cluster.waiting import wait_until

pytestmark = pytest.mark.slow

#: Notes when it was called, and its first arguments, and becomes the program itself.
_NOTED = """#!/bin/sh
echo "$(date +%s.%N) $1 $2 $3" >> '{calls}'
exec '{program}' "$@"
"""


def note_calls(user: User, *names: str) -> Path:
    """A folder with these programs of Slurm, each of which notes its calls in NAME.calls there."""
    folder = user.home / "noted"
    folder.mkdir()
    for name in names:
        program = shutil.which(name, path=user.environment["PATH"])
        (folder / name).write_text(_NOTED.format(calls=folder / f"{name}.calls", program=program))
        (folder / name).chmod(0o755)
    return folder


def calls(folder: Path, name: str) -> list[str]:
    path = folder / f"{name}.calls"
    return path.read_text().splitlines() if path.exists() else []


def test_watch_releases_a_requeued_run_and_asks_slurm_at_most_twice_a_minute(user: User) -> None:
    run, job_id = user.submit("long", env=slowly(1.0))
    user.wait_for_step(run)
    user.run("stk", "requeue", run.run_id)

    def waits() -> bool:
        answer = user.run("squeue", "--noheader", "--format=%r", f"--jobs={job_id}").stdout
        return answer.strip() == "BeginTime"

    wait_until(waits, lambda: user.story(run))
    noted = note_calls(user, "squeue", "sacct", "scontrol")
    path = os.pathsep.join([str(noted), user.environment["PATH"]])
    watched = user.run(
        "stk", "watch", "--until-finished", "--interval", "0.5", run.run_id, env={"PATH": path}
    )
    assert [start["why"] for start in starts(run)][1:] == ["finished"], user.story(run)
    assert any("starttime=now" in call for call in calls(noted, "scontrol"))
    words = [line.split(" ")[2] for line in watched.stdout.splitlines()]
    assert (words[0], words[-1]) == ("requeued", "finished"), watched.stdout
    asked = sorted(float(call.split(" ")[0]) for name in ("squeue", "sacct") for call in calls(noted, name))
    assert asked
    assert all(sum(moment <= each < moment + 59 for each in asked) <= 2 for moment in asked)
