"""Runs from Python on the real cluster: a function that is preempted, one that is cancelled, a file."""

from __future__ import annotations

import json
import textwrap

import pytest

from tests.cluster.product.user import User, starts
from tests.cluster.waiting import wait_until
from tests.support.patience import PATIENCE_S
from toolkit.run.run_dir import RunDir

WORK = """
import time
from pathlib import Path

import stk


def saves(home):
    run = stk.current_run()
    folder = run.latest_checkpoint()
    if folder is not None:
        return {"from": (folder / "step").read_text(), "home": home}
    Path(home, "started").touch()
    while not run.should_stop():
        time.sleep(0.1)
    with run.checkpoint(7) as folder:
        (folder / "step").write_text("7")
    run.leave()


def waits(home):
    Path(home, "waiting").touch()
    # It is cancelled meanwhile.
    time.sleep(3600)
"""


def python(user: User, code: str) -> str:
    """Run Python code on the login node; return what it prints last."""
    text = f"import json, stk, work\n{textwrap.dedent(code)}"
    return user.run("python", "-c", text).stdout.splitlines()[-1]


@pytest.mark.slow
def test_preempted_function_resumes_and_returns_its_result(user: User) -> None:
    (user.home / "work.py").write_text(WORK, encoding="utf-8")
    run_id = python(
        user,
        f"""
        resources = {{"resources.partition": "preemptible", "resources.gres": "gpu:4", "code": ["work.py"]}}
        print(stk.submit(work.saves, {str(user.home)!r}, overrides=resources, cluster="slurm").id)
        """,
    )
    run = RunDir(user.runs / run_id)
    wait_until((user.home / "started").exists, lambda: user.story(run))
    user.preempt(starts(run)[0]["hosts"][0])
    told = json.loads(
        python(user, f"print(json.dumps(stk.Run({run_id!r}).result(timeout={PATIENCE_S / 2})))")
    )
    assert told == {"from": "7", "home": str(user.home)}, user.story(run)
    assert [each["why"] for each in starts(run)] == ["preempted", "finished"]


@pytest.mark.slow
def test_cancelled_function_raises_and_an_experiment_beside_it_finishes(user: User) -> None:
    (user.home / "work.py").write_text(WORK, encoding="utf-8")
    told = json.loads(
        python(
            user,
            f"""
            import time
            from pathlib import Path
            trained = stk.submit("quick.yaml", {{"train.epochs": 1}}, cluster="slurm")
            code = {{"code": ["work.py"]}}
            held = stk.submit(work.waits, {str(user.home)!r}, overrides=code, cluster="slurm")
            while not Path({str(user.home)!r}, "waiting").exists():
                time.sleep(0.5)
            held.cancel()
            try:
                held.result(timeout={PATIENCE_S / 2})
            except stk.RunCancelled:
                state = held.status()["state"]
            result = trained.result(timeout={PATIENCE_S / 2})
            print(json.dumps([state, result["state"], len(trained.metrics()) > 0, len(stk.runs("quick-*"))]))
            """,
        )
    )
    assert told == ["cancelled", "finished", True, 1]
