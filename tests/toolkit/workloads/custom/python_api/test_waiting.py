"""A live run: its state, a wait that times out, and cancelling it."""

from __future__ import annotations

import signal
import subprocess
import sys
from types import ModuleType

import pytest

import stk
from tests.cluster.waiting import wait_until
from tests.support.patience import PATIENCE_S


def test_a_live_run_can_be_waited_for_and_cancelled(work: ModuleType) -> None:
    run = stk.submit(work.waits, cluster="local")
    wait_until((run.folder / "started").exists, lambda: repr(run.status()))
    assert run.id in repr(run)
    assert run.status()["state"] == "running"
    for wait in (run.wait, run.result):
        with pytest.raises(TimeoutError, match=f"{run.id} has not ended after 0 s"):
            wait(timeout=0)
    with pytest.raises(stk.UserError, match="cannot be started twice"):
        stk.submit(work.waits, cluster="local")
    run.cancel()
    assert run.wait().status()["state"] == "cancelled"
    assert "cancelled" in repr(run) or "stopped" in repr(run)
    with pytest.raises(stk.RunCancelled, match=run.id):
        run.result()
    assert "nothing to cancel" in run.cancel()


@pytest.mark.slow
def test_ctrl_c_cancels_the_run(work: ModuleType) -> None:
    plan = stk.plan(work.waits)
    process = subprocess.Popen([sys.executable, "-c", "import stk, work; stk.run(work.waits)"])
    wait_until((plan.folder / "started").exists, lambda: str(process.poll()))
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) != 0
    assert stk.Run(plan.folder).status()["state"] == "cancelled"
