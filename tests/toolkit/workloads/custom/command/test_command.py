"""A command as a run, with real processes: its environment, and the meaning of its exit."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from slurm.cli import _parse
from tests.tiers import first_quick
from tests.toolkit.support.tiny import events
from tests.toolkit.workloads.custom.command_runs import Stk, last_attempt, script, the_run
from toolkit.config import load
from toolkit.errors import UserError
from toolkit.files import read_json
from toolkit.reliability.stop import NeverStop
from toolkit.run.attempts.outcome import Outcome
from toolkit.run.attempts.records import read_attempts
from toolkit.run.create_run import create_run
from toolkit.run.records.ranks import hosts_of
from toolkit.run.run_dir import RunDir, find_runs
from toolkit.system.world import World
from toolkit.workloads.custom.command.worker import run_attempt

#: Saves a number, and goes on with it in the next attempt; leaves when it is asked to.
SAVES = """
import os, pathlib, signal, sys, time
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
latest = os.environ["STK_LATEST_CHECKPOINT"]
step = int(pathlib.Path(latest).read_text()) if latest else 0
print("from", step, flush=True)
pathlib.Path("started").touch()
while step < 3 or not latest:
    time.sleep(0.05)
    step = min(step + 1, 3)
    if asked:
        pathlib.Path(os.environ["STK_CHECKPOINT_DIR"], "state").write_text(str(step))
        assert os.path.exists(os.environ["STK_STOP_FILE"])
        sys.exit(75)
"""


def terminated(*words: str) -> int:
    """Start a run, and send it SIGTERM once its script has begun; return the exit status."""
    command = [sys.executable, "-P", "-m", "slurm", "run", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not any(
        (run.work / "started").exists() for run in find_runs(Path(os.environ["STK_EXPERIMENT_DIR"]))
    ):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate()
    print(output)
    return process.returncode


def test_each_process_gets_its_rank_and_parameters(stk: Stk) -> None:
    script(
        "import json, os, pathlib, sys\n"
        "import beside\n"
        "rank, folder = os.environ['RANK'], pathlib.Path(os.environ['STK_RUN_DIR'])\n"
        "more = {'words': sys.argv[1:], 'data': pathlib.Path('data/rows.csv').read_text()}\n"
        "(folder / f'rank{rank}').write_text(json.dumps({**os.environ, **more}))\n"
        "print('rank', rank)\n"
    )
    script("", "beside.py")
    Path("data").mkdir()
    Path("data/rows.csv").write_text("1,2")
    done = stk("run", "--procs", "2", "params.lr=0.5", "--", sys.executable, "train.py", "--out", "a b")
    assert done.returncode == 0, done.stderr
    run = the_run()
    found = [json.loads((run.path / f"rank{rank}").read_text()) for rank in range(2)]
    assert [(each["RANK"], each["LOCAL_RANK"]) for each in found] == [("0", "0"), ("1", "1")]
    for each in found:
        assert (each["WORLD_SIZE"], each["LOCAL_WORLD_SIZE"], each["GROUP_RANK"]) == ("2", "2", "0")
        assert each["words"] == ["--out", "a b", "--lr", "0.5"]
        assert json.loads(each["STK_PARAMS"]) == {"lr": 0.5}
        assert each["STK_RUN_DIR"] == str(run.path)
        assert (each["STK_ATTEMPT"], each["STK_LATEST_CHECKPOINT"]) == ("1", "")
        assert each["data"] == "1,2"
    assert found[0]["MASTER_ADDR"] == found[1]["MASTER_ADDR"]
    assert found[0]["MASTER_PORT"] == found[1]["MASTER_PORT"]
    assert "rank 0" in done.stdout
    assert "rank 1" not in done.stdout
    logs = {rank: path.read_text() for _, rank, path in run.rank_logs()}
    assert "rank 0\n" in logs[0]
    assert "rank 1\n" in logs[1]
    assert read_json(run.result)["state"] == "finished"
    assert hosts_of(run, last_attempt().nonce) == dict.fromkeys(range(2), socket.gethostname())


def test_heartbeat_shows_the_program_soon_after_its_start(stk: Stk) -> None:
    """Without waiting for the next regular heartbeat, which comes every 15 s."""
    script(
        "import os, pathlib, time\n"
        "heartbeat = pathlib.Path(os.environ['STK_RUN_DIR'], 'ranks')\n"
        "begun = time.monotonic()\n"
        "while not any('\"program\"' in each.read_text() for each in heartbeat.glob('*.rank_00000.json')):\n"
        "    assert time.monotonic() < begun + 10\n"
        "    time.sleep(0.05)\n"
    )
    done = stk("run", "--", sys.executable, "train.py")
    assert done.returncode == 0, done.stderr


def test_launch_node_starts_one_process_on_each_node(stk: Stk) -> None:
    script(
        "import os\n"
        "names = 'RANK WORLD_SIZE PET_NNODES PET_NODE_RANK PET_MASTER_PORT'.split()\n"
        "print('place', *(os.environ[name] for name in names), os.environ['MASTER_PORT'])\n"
    )
    done = stk("run", "--procs", "2", "task.launch=node", "--", sys.executable, "train.py")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("place")]
    rank, size, nodes, node, port, same = line.split()[1:]
    assert (rank, size, nodes, node) == ("0", "1", "1", "0")
    assert port == same


@pytest.mark.parametrize("procs, times", [(1, 0), (2, 1)])
def test_launcher_in_several_processes_is_named_once(stk: Stk, procs: int, times: int) -> None:
    launcher = Path("torchrun")
    launcher.write_text("#!/bin/sh\n")
    launcher.chmod(0o755)
    Path("train.yaml").write_text(
        "name: train\ntask: {kind: command, run: [./torchrun, train.py]}\nresources: {nodes: 2}\n"
    )
    done = stk("run", "train.yaml", "--procs", str(procs))
    assert (done.returncode, done.stderr.count("task.launch=node")) == (0, times), done.stderr


def test_command_saves_on_sigterm_and_resumes_at_its_next_start(stk: Stk) -> None:
    script(SAVES)
    words = ("--", sys.executable, "train.py")
    assert terminated(*words) == 130
    first = last_attempt()
    assert (first.why, first.resumed, first.saved) == ("SIGTERM", False, True)
    # Later edits are for another run.
    script("raise SystemExit(9)")
    done = stk("run", *words)
    assert done.returncode == 0, done.stderr
    second = last_attempt()
    assert (second.why, second.resumed) == ("finished", True)
    assert read_json(the_run().result)["attempts"] == 2


@pytest.mark.parametrize("total", [10, 3])
def test_command_that_ends_with_0_when_asked_has_finished_unless_steps_are_missing(
    stk: Stk, total: int
) -> None:
    # As a script with Lightning and without RunCallback does.
    script(
        "import pathlib, signal, sys, stk\n"
        f"stk.current_run().log(step=3, total={total}, loss=1)\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
        "pathlib.Path('started').touch()\n"
        "signal.pause()\n"
    )
    assert terminated("--", sys.executable, "train.py") == (130 if total > 3 else 0)
    assert last_attempt().why == ("SIGTERM" if total > 3 else "finished")


def test_script_in_a_wrapper_that_ends_before_it_saves_and_resumes(stk: Stk) -> None:
    # The shell ends at once. The script saves when nothing is left of it, so after its end has been noticed.
    saves_later = SAVES.replace(
        "    if asked:\n",
        "    if asked:\n        while os.path.exists(f'/proc/{shell}'):\n            time.sleep(0.05)\n",
    )
    script("import os\nshell = os.getppid()\n" + saves_later)
    Path("train.sh").write_text(f"{sys.executable} train.py\ntrue\n")
    words = ("code=[train.py,train.sh]", "--", "sh", "train.sh")
    assert terminated(*words) == 130
    assert last_attempt().saved is True
    assert stk("run", *words).returncode == 0
    assert last_attempt().resumed is True


@pytest.mark.parametrize("is_written", [True, False])
def test_status_says_whether_a_command_wrote_its_own_files(stk: Stk, is_written: bool) -> None:
    script(
        "import beside, pathlib, sys\n" + "pathlib.Path('model.pt').touch()\n" * is_written + "sys.exit(75)\n"
    )
    script("", "beside.py")
    stk("run", "--", sys.executable, "train.py")
    attempt = last_attempt()
    assert (attempt.saved, bool(attempt.wrote)) == (False, is_written)
    (row,) = json.loads(stk("status", "--json").stdout)
    assert ("work/" in row["reason"]) == is_written
    assert ("from scratch" in row["reason"]) != is_written
    assert ("elsewhere" in row["reason"]) != is_written


def test_the_log_remembers_the_files_of_an_earlier_attempt(stk: Stk) -> None:
    """The second attempt writes none, and may have continued from those of the first one."""
    script(
        "import pathlib, sys\nif not (own := pathlib.Path('model.pt')).exists(): own.touch()\nsys.exit(75)\n"
    )
    for _ in range(2):
        assert "starts over" not in stk("run", "--", sys.executable, "train.py").stdout
    assert [each.wrote for each in read_attempts(the_run())] == [True, False]
    script("import sys\nsys.exit(75)\n", "other.py")
    assert "starts over" in stk("run", "--", sys.executable, "other.py").stdout


@pytest.mark.parametrize("leaves", ["raise SystemExit(75)", "import stk\nstk.current_run().leave()"])
def test_a_command_that_leaves_by_itself_was_not_asked_to(stk: Stk, leaves: str) -> None:
    script(f"{leaves}\n")
    assert stk("run", "--procs", "2", "--", sys.executable, "train.py").returncode == 130
    assert last_attempt().why == "saved"
    (row,) = json.loads(stk("status", "--json").stdout)
    assert (row["state"], row["doing"]) == ("cancelled", "stopped: by itself")
    assert row["reason"].startswith("stopped by itself, with status 75")


@pytest.mark.parametrize(
    "leaves", ["while not run.should_stop(): pass\nrun.leave()", "run._leave_if_asked()"]
)
def test_a_script_that_leaves_after_a_signal_to_its_process_was_asked_to(stk: Stk, leaves: str) -> None:
    signalled = "import os, signal, stk\nrun = stk.current_run()\nos.kill(os.getpid(), signal.SIGUSR2)\n"
    script(f"{signalled}{leaves}\n")
    assert stk("run", "--", sys.executable, "train.py").returncode == 130
    assert last_attempt().why == "requested"


def test_a_rank_that_leaves_after_a_signal_to_another_one_was_asked_to(stk: Stk) -> None:
    script(
        "import os, signal, stk\nimport torch.distributed as dist\n"
        "run = stk.current_run()\ndist.init_process_group('gloo')\n"
        "if dist.get_rank() == 1: os.kill(os.getpid(), signal.SIGUSR2)\n"
        "while not run.should_stop(every=1): pass\n"
        "while dist.get_rank() == 1 and not run._place.stop_file.exists(): pass\n"
        "run.leave()\n"
    )
    assert stk("run", "--procs", "2", "--", sys.executable, "train.py").returncode == 130
    assert last_attempt().why == "requested"


def test_failure_is_classified_by_the_end_of_the_log(stk: Stk) -> None:
    script("import no_such_module")
    done = stk("run", "--", sys.executable, "train.py")
    assert done.returncode == 4
    failure = read_json(the_run().failure)
    assert failure["class"] == last_attempt().why == "import"
    error = "ModuleNotFoundError: No module named 'no_such_module'"
    assert failure["message"] == f"the command ended with status 1: {error}"
    assert error in done.stderr


def test_evaluate_refuses_a_run_of_a_command(stk: Stk) -> None:
    script("")
    assert stk("run", "--", sys.executable, "train.py").returncode == 0
    done = stk("evaluate", the_run().run_id)
    assert done.returncode == 2
    assert "no best checkpoint" in done.stderr
    assert "Traceback" not in done.stderr


#: Rank 1 fails once the other one can save.
SAVES_AFTER_A_FAILURE = """
import os, pathlib, signal, sys, time

def save(*_):
    is_asked_by_stk = os.getppid() == int(os.environ["STK_WATCHER"])
    pathlib.Path("saved").write_text(str(is_asked_by_stk))
    sys.exit(status)

status = int(sys.argv[1])
if os.environ["RANK"] == "0":
    signal.signal(signal.SIGTERM, save)
    pathlib.Path("begun").touch()
    signal.pause()
while not pathlib.Path("begun").exists():
    time.sleep(0.05)
sys.exit(3)
"""


@pytest.mark.parametrize("status", first_quick(["75", "0", "1"]))
def test_a_rank_that_fails_lets_the_others_save_and_ends_them(stk: Stk, status: str) -> None:
    script(SAVES_AFTER_A_FAILURE)
    done = stk("run", "--procs", "2", "--", sys.executable, "train.py", status)
    assert done.returncode == 4
    run = the_run()
    # Not by the kernel, as when its rank is killed.
    assert (run.work / "saved").read_text() == "True"
    failure = read_json(run.failure)
    assert (failure["rank"], failure["message"]) == (1, "the command ended with status 3")
    assert (last_attempt().why, last_attempt().rank) == ("exception", 1)
    assert [each["rank"] for each in events(run, "failure")] == [1]
    assert "counts as done" not in done.stdout + done.stderr


def new_run() -> RunDir:
    """A run of the script, made in this process."""
    arguments = _parse(["run", "--", sys.executable, "train.py"])
    experiment = load(Path(arguments.config), arguments.overrides)
    return create_run(experiment, Path(os.environ["STK_EXPERIMENT_DIR"]))


@pytest.mark.usefixtures("stk")
def test_folder_that_was_moved_meanwhile_is_named_and_not_made_anew(tmp_path: Path) -> None:
    rename = f"os.rename(os.environ['STK_EXPERIMENT_DIR'], {str(tmp_path / 'moved')!r})"
    script(f"import os\n{rename}\nraise SystemExit(75)")
    run = new_run()
    with pytest.raises(UserError, match=f"{run.path} is gone.*stk resume {run.run_id}"):
        run_attempt(run, World.single(), NeverStop())
    assert not run.path.exists()


@pytest.mark.parametrize("handler", ["signal.SIG_DFL", "lambda *_: sys.exit(75)"])
def test_command_ended_by_the_warning_signal_has_not_failed(stk: Stk, handler: str) -> None:
    # As Python does in its own end, it no longer handles the signal. The scheduler has not said why yet.
    script(
        f"import pathlib, signal, sys\nsignal.signal(signal.SIGUSR2, {handler})\n"
        "pathlib.Path('started').touch()\nsignal.pause()\n"
    )
    run = new_run()

    def warn() -> None:
        while not (run.work / "started").exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGUSR2)

    before = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    threading.Thread(target=warn, daemon=True).start()
    try:
        assert run_attempt(run, World.single(), NeverStop()) is Outcome.YIELDED
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert last_attempt().why == "requested"
    assert not run.failure.exists()


def test_missing_program_exits_with_wrong_input(stk: Stk) -> None:
    done = stk("run", "--", "no-such-program")
    assert done.returncode == 2
    assert "no-such-program" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "before, is_kept",
    [
        ("", False),
        ("pathlib.Path(os.environ['STK_CHECKPOINT_DIR'], 'saved').touch()\n", True),
        ("pathlib.Path('table.csv').touch()\n", True),
    ],
    ids=["nothing done", "a save", "a file"],
)
def test_wrong_call_to_the_toolkit_removes_only_a_run_that_has_done_nothing(
    stk: Stk, before: str, is_kept: bool
) -> None:
    script(
        f"import os, pathlib\nimport stk\nrun = stk.current_run()\n{before}run.log(step='three', loss=1.0)\n"
    )
    done = stk("run", "--", sys.executable, "train.py")
    assert done.returncode == 2, done.stderr
    assert "run.log(step='three'): expected a whole number" in done.stderr
    assert len(list(find_runs(Path(os.environ["STK_EXPERIMENT_DIR"])))) == is_kept


def test_a_plan_imports_no_torch_and_writes_nothing(stk: Stk, tmp_path: Path) -> None:
    script("")
    code = "import sys; from slurm import cli; cli.main(sys.argv[1:]); assert 'torch' not in sys.modules"
    command = [sys.executable, "-c", code, "plan", "resources.nodes=2", "--", "python", "train.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "#SBATCH --nodes=2" in done.stdout
    assert not (tmp_path / "runs").exists()
