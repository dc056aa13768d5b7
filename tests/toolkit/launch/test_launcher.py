"""The ranks of a run on one machine: they begin together, with the run's code, and end together."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support.patience import PATIENCE_S, until
from tests.toolkit.run.failure.test_log_end import FAULT, TIME_OUT
from tests.toolkit.support.tiny import SIZES, assert_equal_runs, events, metrics_lines, tiny
from tests.toolkit.support.tiny_training import Attempt, Lab
from toolkit.exit_codes import ExitCode
from toolkit.files import read_json, read_json_lines, write_json
from toolkit.launch.launcher import _note_silent, exit_code, rank_environment, run_as_coordinator
from toolkit.launch.machines.coordination import Nodes
from toolkit.launch.machines.layout import Machines
from toolkit.reliability import fault_injection
from toolkit.run.attempts.records import read_attempts
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir
from toolkit.system.world import NONCE_VARIABLE

#: Slow enough to be interrupted, and short enough to finish.
EPOCHS, SLOW = 3, "slow 0.1 at=forward"


def launched(
    run: RunDir, procs: int, spec: str = "", stdin: int = subprocess.DEVNULL
) -> subprocess.Popen[str]:
    """Start a launcher of a run, with faults, in a process group of its own."""
    return subprocess.Popen(
        # With SIGHUP as a terminal leaves it, also where the tests run under nohup.
        ["env", "--default-signal=HUP", sys.executable, "-m", "toolkit.launch", str(run.path), str(procs)],
        env={**os.environ, fault_injection.VARIABLE: spec},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    )


def ended(launcher: subprocess.Popen[str]) -> int:
    said(launcher)
    return launcher.returncode


def said(launcher: subprocess.Popen[str]) -> str:
    """What it wrote to the terminal until its end."""
    output, _ = launcher.communicate(timeout=PATIENCE_S)
    print(output)
    return output


def pids(run: RunDir) -> list[int]:
    """Processes of the ranks of the newest attempt, by rank."""
    nonce = list(read_json_lines(run.attempts))[-1]["nonce"]
    return [rank["pid"] for rank in read_json_lines(run.ranks(nonce))]


def is_pending(pid: int, number: int) -> bool:
    """Whether a process has not yet taken a signal."""
    (mask,) = re.findall(r"ShdPnd:\t(\w+)", Path(f"/proc/{pid}/status").read_text())
    return bool(int(mask, 16) >> (number - 1) & 1)


def two_children(pid: int) -> list[psutil.Process]:
    """The two processes that another one has started; none before both are there."""
    found = psutil.Process(pid).children()
    return found if len(found) == 2 else []


@pytest.mark.slow
def test_two_runs_on_one_host_at_once_both_train(lab: Lab) -> None:
    runs = [create_run(tiny(lab.folder, f"seed={seed}"), lab.folder / "at_once") for seed in (1, 2)]
    launchers = [launched(run, 2) for run in runs]
    assert [ended(launcher) for launcher in launchers] == [0, 0]
    for run in runs:
        assert read_json(run.result)["state"] == "finished"
        assert (run.report / "report.html").is_file()
        (line,) = read_json_lines(run.attempts)
        assert line["world_size"] == 2
        assert line["nonce"].startswith("local-")
    nonces = {next(iter(read_json_lines(run.attempts)))["nonce"] for run in runs}
    assert len(nonces) == 2


def test_launcher_stopped_by_a_closed_terminal_saves_and_the_next_one_resumes(lab: Lab) -> None:
    long = tiny(lab.folder, f"train.epochs={EPOCHS}", "train.eval_per_epoch=1")
    run = lab.start(long)
    launcher = launched(run, 2, SLOW)
    until(lambda: metrics_lines(run))
    launcher.send_signal(signal.SIGHUP)
    assert ended(launcher) == 130
    (attempt,) = read_attempts(run)
    assert attempt.why == "SIGHUP"
    assert run.checkpoint_steps()[-1] == attempt.last_step
    assert not run.failure.exists()
    assert ended(launched(run, 1)) == 0
    assert_equal_runs(run, lab.train(long, Attempt()))
    steps = [line["step"] for line in metrics_lines(run) if line["split"] == "train"]
    assert steps == sorted(set(steps))
    assert steps[-1] == EPOCHS * -(-SIZES["train"] // 8)


@pytest.mark.parametrize("has_terminal, send", [(False, os.killpg), (True, os.kill)])
def test_one_interrupt_of_all_processes_or_of_the_launcher_lets_the_run_save(
    lab: Lab, has_terminal: bool, send: Callable[[int, int], None]
) -> None:
    run = lab.start(tiny(lab.folder, "train.epochs=5003", "train.eval_per_epoch=1"))
    terminal = pty.openpty()
    launcher = launched(run, 2, SLOW, stdin=terminal[1] if has_terminal else subprocess.DEVNULL)
    until(lambda: metrics_lines(run), launcher)
    # The ranks get it first, or the launcher's signal could come before they look, and count as the same one.
    launcher.send_signal(signal.SIGSTOP)
    send(launcher.pid, signal.SIGINT)
    until(lambda: not any(is_pending(rank, signal.SIGINT) for rank in pids(run)))
    launcher.send_signal(signal.SIGCONT)
    assert ended(launcher) == 130
    for end in terminal:
        os.close(end)
    (attempt,) = read_attempts(run)
    assert attempt.why == "SIGINT"
    assert run.checkpoint_steps()[-1] == attempt.last_step


@pytest.mark.slow
def test_repeated_interrupt_ends_all_ranks_without_a_save(lab: Lab) -> None:
    """The ranks hang, so the first interrupt, which asks them to save, has no effect."""
    run = lab.start(tiny(lab.folder, "train.epochs=5003"))
    launcher = launched(run, 2, "hang at=forward step=3")
    until(lambda: len(events(run, "fault")) == 2)
    ranks = pids(run)
    until(lambda: not any(map(psutil.pid_exists, ranks)) or launcher.send_signal(signal.SIGINT))
    assert "Traceback" not in said(launcher)
    assert launcher.returncode == 130
    assert not run.checkpoint_steps()
    (attempt,) = read_attempts(run)
    assert (attempt.why, attempt.concluded, run.failure.exists()) == ("SIGINT", True, False)


def test_sigusr1_ends_a_launcher_that_was_interrupted_by_it_before(run: RunDir) -> None:
    code = (
        "import pathlib, signal\n"
        "from toolkit.launch.launcher import Machines, Nodes, RunDir, _Launcher\n"
        "from toolkit.reliability.early_signals import interrupt_on_request\n"
        "interrupt_on_request()\n"
        f"_Launcher(RunDir(pathlib.Path({str(run.path)!r})), Nodes(Machines.alone(1)), {{}}, True)\n"
        "signal.raise_signal(signal.SIGUSR1)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL, check=False)
    assert done.returncode == -signal.SIGUSR1


@pytest.mark.slow
def test_rank_that_stands_still_is_named_and_killed(lab: Lab) -> None:
    run = lab.start(tiny(lab.folder, "train.hang_timeout_s=20", "resources.max_crashes=0"))
    assert ended(launched(run, 2, "stop at=communication step=5 rank=0")) == 4
    failure = read_json(run.failure)
    assert (failure["class"], failure["rank"]) == ("hang", 0)
    assert not any(map(psutil.pid_exists, pids(run)))


def test_rank_whose_log_shows_an_abort_is_named_rather_than_one_that_was_killed(run: RunDir) -> None:
    run.logs.mkdir()
    run.log("n", 1).write_text(TIME_OUT)
    _note_silent(run, "n", [-signal.SIGKILL, -signal.SIGABRT], 0, is_oom=False)
    failure = read_json(run.failure)
    assert (failure["class"], failure["rank"], failure["blamed"]) == ("communication", 1, None)
    assert "SIGABRT" in failure["message"]
    assert "SeqNum=1580" in failure["message"]


def test_rank_with_a_segmentation_fault_is_named_and_no_host_is_blamed(run: RunDir) -> None:
    run.logs.mkdir()
    run.log("n", 1).write_text(FAULT)
    _note_silent(run, "n", [ExitCode.FAILED, -signal.SIGSEGV], 0, is_oom=False)
    failure = read_json(run.failure)
    assert (failure["class"], failure["rank"], failure["blamed"]) == ("segfault", 1, None)
    assert "SIGSEGV" in failure["message"]


@pytest.mark.parametrize("log, number, kind", [("", 11, "segfault"), (FAULT, 9, "killed")])
def test_signal_of_a_rank_decides_whether_it_had_a_segmentation_fault(
    run: RunDir, log: str, number: int, kind: str
) -> None:
    """Its stack may be on the terminal, and the one in the log of a child."""
    run.logs.mkdir()
    run.log("n", 0).write_text(log)
    _note_silent(run, "n", [-number], 0, is_oom=False)
    assert read_json(run.failure)["class"] == kind


def test_ranks_do_not_outlive_their_launcher(lab: Lab) -> None:
    """Even if the launcher is killed, its ranks save and exit."""
    run = lab.start(tiny(lab.folder, "train.epochs=5001", "train.eval_per_epoch=1"))
    launcher = launched(run, 2)
    until(lambda: metrics_lines(run))
    ranks = pids(run)
    launcher.kill()
    ended(launcher)
    until(lambda: not any(map(psutil.pid_exists, ranks)))
    (attempt,) = read_json_lines(run.attempts)
    assert run.checkpoint_steps()[-1] == attempt["last_step"]


@pytest.mark.slow
def test_ranks_do_not_outlive_a_launcher_killed_during_their_start(lab: Lab) -> None:
    """The ranks import torch for seconds before they start."""
    run = lab.start(tiny(lab.folder, "train.epochs=5003", "train.eval_per_epoch=1"))
    launcher = launched(run, 2)
    ranks = until(lambda: two_children(launcher.pid))
    launcher.kill()
    ended(launcher)
    until(lambda: not any(rank.is_running() for rank in ranks))
    assert not run.failure.exists()
    (attempt,) = read_json_lines(run.attempts)
    # None is saved where the data were still being prepared.
    assert (attempt["why"], max(run.checkpoint_steps(), default=0)) == ("SIGTERM", attempt["last_step"])


def test_crashed_run_restarts_by_itself_and_ends_like_an_undisturbed_one(lab: Lab) -> None:
    experiment = tiny(lab.folder, "checkpoint.every_steps=2")
    run = lab.start(experiment)
    launcher = launched(run, 2, "kill at=backward step=5 rank=1 attempt=1")
    output = said(launcher)
    assert launcher.returncode == 0
    first, second = read_json_lines(run.attempts)
    assert (first["why"], second["why"], second["resumed"]) == ("killed", "finished", True)
    assert first["rank"] == 1
    assert f"killed, rank 1 on {first['host']}" in output
    assert "starting again" in output
    assert {event["class"] for event in events(run, "failure")} <= {"killed", "peer_lost"}
    (restarted,) = events(run, "restarted")
    assert restarted["why"] in output
    assert not run.failure.exists()
    assert_equal_runs(run, lab.train(experiment, Attempt()))


@pytest.mark.slow
def test_import_error_is_not_retried(lab: Lab) -> None:
    run = lab.start(tiny(lab.folder))
    with open(run.code / "toolkit" / "training" / "loop.py", "a") as code:
        code.write("\nimport missing_module\n")
    assert ended(launched(run, 1)) == 4
    (log,) = run.logs.glob("*.log")
    assert "No module named 'missing_module'" in log.read_text()
    (line,) = read_json_lines(run.attempts)
    assert (line["why"], line["first_step"]) == ("import", 0)
    failure = read_json(run.failure)
    assert (failure["phase"], failure["message"]) == (
        "import",
        "ModuleNotFoundError: No module named 'missing_module'",
    )


class Ends:
    """A launcher whose rank ends in these ways, each time before its attempt has begun."""

    is_asked_to_stop = False

    def __init__(self, *codes: int) -> None:
        self.left = [*codes]

    def start(self, nonce: str) -> list[int]:
        return [self.left.pop(0)]


def test_run_without_a_step_is_held_until_it_is_started_again(lab: Lab) -> None:
    run = lab.start(tiny(lab.folder, "resources.max_crashes=9"))
    launcher, nodes = Ends(*[-signal.SIGKILL] * 3, 0), Nodes(Machines.alone(1))
    assert run_as_coordinator(run, launcher, nodes) == 4
    assert launcher.left == [0]
    write_json(run.result, {"state": "finished"})
    failure = read_json(run.failure)
    assert failure["class"] == "no_progress"
    assert "3 attempts in a row made no step" in failure["message"]
    assert "SIGKILL" in failure["message"]
    assert run_as_coordinator(run, launcher, nodes) == 0
    assert not run.failure.exists()


@pytest.mark.parametrize(
    "codes, expected",
    [
        ([0, 0], 0),
        ([75, 75], 130),
        ([0, 75], 130),
        ([4, 4], 4),
        ([2, 4], 2),
        ([-9, 4], 4),
        ([-9, 75], 4),
        ([1, 0], 4),
        ([130, 130], 130),
        ([130, -15], 130),
    ],
)
def test_exit_statuses_of_the_ranks_are_combined_into_one(codes: list[int], expected: int) -> None:
    assert exit_code(codes) == expected


def test_rank_environment_has_the_rank_the_runs_code_and_the_users_variables(run: RunDir) -> None:
    environment = rank_environment(
        run, "local-a", 1, Machines.alone(4), {"PYTHONPATH": "/mine", "HOME": "/home/me"}
    )
    assert environment["PYTHONPATH"] == f"{run.code}{os.pathsep}/mine"
    assert (environment["RANK"], environment["LOCAL_RANK"], environment["WORLD_SIZE"]) == ("1", "1", "4")
    assert (environment[NONCE_VARIABLE], environment["HOME"]) == ("local-a", "/home/me")
    assert rank_environment(run, "a", 0, Machines.alone(1), {})["PYTHONPATH"] == str(run.code)
