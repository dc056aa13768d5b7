"""A rank of a command that is killed or replaced: its processes end, and it does not finish the run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.patience import wait_for_the_end_of
from tests.toolkit.workloads.custom.command_runs import Stk, script, the_run
from toolkit.files import write_json
from toolkit.run.attempts.records import read_attempts
from toolkit.run.run_dir import RunDir
from toolkit.workloads.custom.command import program


def test_process_that_outlives_its_killed_rank_does_not_meet_the_next_attempt(stk: Stk) -> None:
    script(
        "import os, pathlib, signal, psutil\n"
        "mine = pathlib.Path('pid')\n"
        "if os.environ['STK_ATTEMPT'] == '1':\n"
        "    mine.write_text(str(os.getpid()))\n"
        "    os.kill(int(os.environ['STK_WATCHER']), signal.SIGKILL)\n"
        "    signal.pause()\n"
        "earlier = int(mine.read_text())\n"
        "if psutil.pid_exists(earlier) and psutil.Process(earlier).status() != psutil.STATUS_ZOMBIE:\n"
        "    os.kill(earlier, signal.SIGKILL)\n"
        "    raise SystemExit('it lives')\n"
    )
    Path("train.sh").write_text(f"{sys.executable} train.py\ntrue\n")
    done = stk("run", "code=[train.py,train.sh]", "--", "sh", "train.sh")
    assert [each.why for each in read_attempts(the_run())] == ["killed", "finished"], done.stderr


def test_process_behind_a_wrapper_ends_with_its_killed_rank(stk: Stk) -> None:
    script(
        "import os, pathlib, signal\n"
        "pathlib.Path('pid').write_text(str(os.getpid()))\n"
        "os.kill(int(os.environ['STK_WATCHER']), signal.SIGKILL)\n"
        "signal.pause()\n"
    )
    Path("train.sh").write_text(f"{sys.executable} train.py\ntrue\n")
    words = ("resources.max_crashes=0", "code=[train.py,train.sh]", "--", "sh", "train.sh")
    assert stk("run", *words).returncode == 4
    wait_for_the_end_of(int((the_run().work / "pid").read_text()))


def test_only_processes_of_a_replaced_attempt_are_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDir(tmp_path)
    write_json(run.fence, {"nonce": "new", "earlier": ["old"]})
    of_run = {"STK_RUN_DIR": str(tmp_path), "STK_NONCE": "old"}
    processes = {1: of_run, 2: of_run | {"STK_NONCE": "new"}, 3: of_run | {"STK_RUN_DIR": "/other"}, 4: {}}
    # A finished attempt of an earlier folder, or the same path in another container; a script that a person
    # started; the shell that this attempt is in.
    processes |= {5: of_run | {"STK_NONCE": "unknown"}, 6: {"STK_RUN_DIR": str(tmp_path)}, 7: of_run}
    killed: list[int] = []
    monkeypatch.setattr(program, "environments", processes.items)
    monkeypatch.setattr(program, "ancestors", lambda: [7])
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append(pid))
    program.end_earlier_processes(run)
    assert killed == [1]


@pytest.mark.parametrize("wrapper", [[], ["sh", "-c", '"$@"; true', "sh"]])
def test_script_saves_and_writes_into_the_log_after_its_rank_was_killed(stk: Stk, wrapper: list[str]) -> None:
    script(
        "import os, signal, time, stk\n"
        "run = stk.current_run()\n"
        "os.kill(int(os.environ['STK_WATCHER']), signal.SIGKILL)\n"
        "while not run.should_stop():\n"
        "    time.sleep(0.01)\n"
        "print('it saves', flush=True)\n"
        "with run.checkpoint(7) as folder:\n"
        "    (folder / 'state').touch()\n"
        "run.leave()\n"
    )
    words = ("resources.max_crashes=0", "code=[train.py]", "--", *wrapper, sys.executable, "train.py")
    assert stk("run", *words).returncode == 4
    run = the_run()
    assert run.checkpoint(7).exists()
    (attempt,) = read_attempts(run)
    assert attempt.why == "killed"
    assert "it saves" in run.log(attempt.nonce, 0).read_text()


def test_rank_of_a_replaced_attempt_does_not_finish_the_run(stk: Stk) -> None:
    """As one that was frozen until another attempt had begun."""
    script(
        "import json, os, pathlib\n"
        "fence = {'nonce': 'other', 'earlier': [os.environ['STK_NONCE']]}\n"
        "(pathlib.Path(os.environ['STK_RUN_DIR']) / 'fence.json').write_text(json.dumps(fence))\n"
    )
    assert stk("run", "--", sys.executable, "train.py").returncode != 0
    run = the_run()
    assert not run.result.exists()
    assert [each.why for each in read_attempts(run)] == [None]


#: The first process that is about to write a report is killed.
KILLED_ONCE = """
import os, pathlib, signal, sys

class Killed:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "toolkit.report.rendering.writing" and (once := pathlib.Path("once")).exists():
            once.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

sys.meta_path.insert(0, Killed)
"""


def test_rank_killed_while_it_writes_the_report_counts_as_a_crash(
    stk: Stk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script("")
    (tmp_path / "sitecustomize.py").write_text(KILLED_ONCE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    Path("once").touch()
    assert stk("run", "resources.max_crashes=0", "--", sys.executable, "train.py").returncode == 4
    (attempt,) = read_attempts(the_run())
    assert attempt.why == "killed"


#: Each process of the toolkit finds that the kernel has killed another one for memory.
MEMORY_RAN_OUT = """
import itertools
from toolkit.reliability import oom

counts = itertools.count()
oom.oom_kills = lambda: next(counts)
"""


def test_command_that_the_kernel_kills_for_memory_is_restarted_once(
    stk: Stk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script("import os\nos.kill(os.getpid(), 9)\n")
    (tmp_path / "sitecustomize.py").write_text(MEMORY_RAN_OUT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    assert stk("run", "--", sys.executable, "train.py").returncode == 4
    assert [each.why for each in read_attempts(the_run())] == ["oom_killed"] * 2
