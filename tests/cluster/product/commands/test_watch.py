"""On the real cluster: who watches a run brings it back from the queue, and asks Slurm rarely."""

from __future__ import annotations

import pytest

from tests.cluster.product.user import User, slowly, starts
from tests.cluster.waiting import wait_until

pytestmark = pytest.mark.slow


def test_watch_releases_a_requeued_run_and_asks_slurm_at_most_twice_a_minute(user: User) -> None:
    run, job_id = user.submit("long", env=slowly(1.0))
    user.wait_for_step(run)
    user.run("stk", "requeue", run.run_id)

    def waits() -> bool:
        answer = user.run("squeue", "--noheader", "--format=%r", f"--jobs={job_id}").stdout
        return answer.strip() == "BeginTime"

    wait_until(waits, lambda: user.story(run))
    env = user.note_calls("squeue", "sacct", "scontrol")
    watched = user.run("stk", "watch", "--until-finished", "--interval", "0.5", run.run_id, env=env)
    assert [start["why"] for start in starts(run)][1:] == ["finished"], user.story(run)
    assert any("starttime=now" in call for call in user.calls("scontrol"))
    words = [line.split(" ")[2] for line in watched.stdout.splitlines()]
    assert (words[0], words[-1]) == ("requeued", "finished"), watched.stdout
    asked = sorted(float(call.split(" ")[0]) for call in user.calls("squeue", "sacct"))
    assert asked
    assert all(sum(moment <= each < moment + 59 for each in asked) <= 2 for moment in asked)
