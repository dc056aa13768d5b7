"""A real run reports its outcome to its webhook, whichever of its processes survives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from tests.support.patience import PATIENCE_S
from tests.toolkit.reliability.notifications.receiver import Receiver, receiving
from tests.toolkit.support.tiny import tiny
from toolkit.files import read_json
from toolkit.reliability import fault_injection
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir

HOOK = "HOOK_URL"


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    experiment = tiny(tmp_path, f"resources.webhook_env={HOOK}", "train.epochs=1", "resources.max_crashes=0")
    return create_run(experiment, tmp_path)


def launch(run: RunDir, receiver: Receiver, spec: str = "") -> int:
    return subprocess.run(
        [sys.executable, "-m", "toolkit.launch", str(run.path), "1"],
        env={**os.environ, fault_injection.VARIABLE: spec, HOOK: receiver.url},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    ).returncode


@pytest.mark.slow
def test_a_killed_and_a_finished_run_each_send_one_message(run: RunDir) -> None:
    with receiving() as receiver:
        assert launch(run, receiver, "kill at=forward step=2") == 4
        assert launch(run, receiver) == 0
        assert launch(run, receiver) == 0
    failure, end = receiver.messages
    assert (failure["event"], failure["attempt"]) == ("failure", 1)
    assert "ended by SIGKILL" in failure["text"]
    assert (end["event"], end["step"]) == ("end", read_json(run.result)["step"])
    assert end["metrics"]["test_accuracy"] == read_json(run.result)["metrics"]["test"]["accuracy"]


@pytest.mark.slow
def test_a_start_refused_because_the_run_is_live_sends_no_message(run: RunDir) -> None:
    with receiving() as receiver, FileLock(run.alive):
        assert launch(run, receiver) == 2
    assert receiver.messages == []
