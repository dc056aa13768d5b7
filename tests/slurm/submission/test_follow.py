"""Runs that follow each other on this machine: a process waits, and becomes the launcher of the next."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from slurm.status.dependency import NOT_BEGUN, why_not_begun
from slurm.status.submissions import last_submission, record, submissions
from tests.slurm.support.user import CONFIG, ROOT, User
from tests.support.patience import PATIENCE_S, until, wait_for_the_end_of
from tests.support.pending_signal import end_with_pending_sigterm
from toolkit.exit_codes import ExitCode
from toolkit.files import write_json
from toolkit.run.create_run import create_run
from toolkit.run.events import read_events
from toolkit.run.run_dir import RunDir

#: Shows its process id, its arguments and where its code is from, in place of a launcher.
_PROBE = "import json, os, sys; print(json.dumps([os.getpid(), sys.argv[1:], os.environ['PYTHONPATH']]))"


@pytest.fixture
def runs(user: User, monkeypatch: pytest.MonkeyPatch) -> tuple[RunDir, RunDir]:
    """Two runs: the first is live while its lock is held, and the code of the second is a probe."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    first = create_run(user.experiment(), user.experiments)
    second = create_run(user.experiment("seed=1"), user.experiments)
    (second.code / "probe.py").write_text(_PROBE)
    return first, second


@pytest.fixture
def follower(runs: tuple[RunDir, RunDir]) -> Iterator[subprocess.Popen[str]]:
    """The process that waits for the first run, which is live until its lock is released."""
    first, second = runs
    with FileLock(first.alive):
        command = [sys.executable, "-P", "-m", "slurm.submission.follow", str(first.path), str(second.path)]
        process = subprocess.Popen(
            [*command, "probe", "a b"], env=dict(os.environ), stdout=subprocess.PIPE, text=True
        )
        yield process
    process.kill()
    process.wait()


def wait_until_listening(pid: int) -> None:
    """Return when SIGTERM would be heeded: the kernel says which signals a process catches."""

    def catches() -> int:
        status = Path(f"/proc/{pid}/status").read_text()
        (caught,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
        return int(caught, 16) >> (signal.SIGTERM - 1) & 1

    until(catches)


def test_follower_becomes_the_next_launcher_when_the_first_run_has_finished(
    runs: tuple[RunDir, RunDir], follower: subprocess.Popen[str]
) -> None:
    first, second = runs
    wait_until_listening(follower.pid)
    assert follower.poll() is None
    write_json(first.result, {"state": "finished", "step": 4})
    out, _ = follower.communicate(timeout=PATIENCE_S)
    pid, arguments, path = json.loads(out)
    assert (pid, arguments) == (follower.pid, ["a b"])
    assert path.split(os.pathsep)[0] == str(second.code)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_code_owned_by_another_user_is_not_started_and_the_run_says_why(
    runs: tuple[RunDir, RunDir], follower: subprocess.Popen[str]
) -> None:
    first, second = runs
    wait_until_listening(follower.pid)
    record(second, cluster="local", job_id=f"local-{follower.pid}", name="second", awaits=str(first.path))
    os.chown(second.code / "probe.py", 65534, 65534)
    write_json(first.result, {"state": "finished", "step": 4})
    out, _ = follower.communicate(timeout=PATIENCE_S)
    assert (out, follower.returncode) == ("", ExitCode.FAILED)
    assert f"{second.code / 'probe.py'} belongs to user nobody" in str(why_not_begun(second))


def test_follower_can_be_cancelled(runs: tuple[RunDir, RunDir], follower: subprocess.Popen[str]) -> None:
    wait_until_listening(follower.pid)
    follower.terminate()
    assert follower.wait(timeout=PATIENCE_S) == 130
    assert not runs[1].attempts.exists()


def test_cancellation_that_came_before_the_follower_was_ready_is_recorded(
    runs: tuple[RunDir, RunDir],
) -> None:
    first, second = runs
    words = ["slurm.submission.follow", str(first.path), str(second.path), "probe"]
    assert end_with_pending_sigterm(words) == ExitCode.INTERRUPTED
    (event,) = read_events(second, NOT_BEGUN)
    assert first.run_id in event.facts["why"]


@pytest.mark.slow
def test_a_chain_without_slurm_trains_one_run_after_the_other(user: User) -> None:
    user.write("second.yaml", CONFIG.replace("name: tiny", "name: second"))
    begins = "train.start_from_checkpoint=${oc.env:STK_EARLIER_RUN}"
    environ = {"PATH": ""}
    answer = user.call(
        "submit", "tiny.yaml", "--then", "second.yaml", begins, "--evaluate", "--json", environ=environ
    )
    assert answer.code == 0, answer.err
    told = json.loads(answer.out)
    second = RunDir(Path(told["then"][0]["run_dir"]))
    wait_for_the_end_of(int(told["evaluation"]["job_id"].removeprefix("local-")))
    assert "scored" in Path(told["evaluation"]["log"]).read_text()
    first_done, second_done = (json.loads(run.result.read_text()) for run in (user.run(), second))
    assert first_done["state"] == second_done["state"] == "finished"
    assert user.run().result.stat().st_mtime <= json.loads(second.attempts.open().readline())["time_start"]
    assert len(submissions(second)) == 1


def test_chain_waits_for_a_foreground_run_until_cancelled(user: User, runs: tuple[RunDir, RunDir]) -> None:
    first, second = runs
    with FileLock(first.alive):
        said = user.told("submit", "tiny.yaml", "--then", "tiny.yaml", "seed=1", "--cluster", "local")
        assert "a terminal, or another job, running already" in said
        (row,) = json.loads(user.stk("status", second.run_id, "--json").out)
        assert (row["state"], row["reason"]) == ("pending", f"waits for {first.run_id} to finish")
        waiting = last_submission(second)
        wait_until_listening(waiting.pid)
        assert user.stk("cancel", second.run_id).code == 0
        wait_for_the_end_of(waiting.pid)
    (row,) = json.loads(user.stk("status", second.run_id, "--json").out)
    assert row["state"] == "cancelled"
    assert "it was cancelled while it waited" in row["reason"]


def test_next_run_is_not_started_after_a_failure_and_says_why(user: User) -> None:
    user.write("second.yaml", CONFIG.replace("name: tiny", "name: second"))
    environ = {"PATH": "", "STK_FAULTS": "raise at=forward step=1"}
    once = "resources.max_crashes=0"
    answer = user.call("submit", "tiny.yaml", once, "--then", "second.yaml", "--json", environ=environ)
    assert answer.code == 0, answer.err
    second = RunDir(Path(json.loads(answer.out)["then"][0]["run_dir"]))
    last = last_submission(second)
    wait_for_the_end_of(last.pid)
    assert f"{user.run().run_id}, which it waited for, is failed" in str(why_not_begun(second))
    assert not second.attempts.exists()
    assert last.cluster == "local"
