"""A training script of the user's own that asks for its run: stopped, killed, its checkpoint damaged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from toolkit.files import read_json, read_json_lines
from toolkit.run.attempts.goodput import timeline
from toolkit.run.attempts.records import read_attempts
from toolkit.run.run_dir import RunDir, find_runs

Stk = Callable[..., subprocess.CompletedProcess[str]]

TOTAL = 12

#: Trains, saves every fifth step, and prints a digest of its weights at its end. With `hold` in its folder,
#: its first start waits at step 8 until it is asked to leave; with `kill` its last rank is killed at step 8.
TRAIN = f"""
import hashlib, os, signal, sys, time
from pathlib import Path
import stk
run = stk.current_run()
assert "torch" not in sys.modules
import torch
import torch.distributed as dist
from torch import nn

here = Path(os.environ["STK_EXPERIMENT_DIR"]).parent / "work"
latest = run.latest_checkpoint()
rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
if size > 1:
    dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
step = 0
if latest:
    state = torch.load(latest / "state.pt")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    step = state["step"]
    assert (latest / f"rank_{{rank}}.txt").read_text() == str(step)
begun = step


def save(folder):
    (folder / f"rank_{{rank}}.txt").write_text(str(step))
    if rank == 0:
        state = {{"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}}
        torch.save(state, folder / "state.pt")


while step < {TOTAL}:
    step += 1
    x = torch.randn(8, 4, generator=torch.Generator().manual_seed(1000 * step + rank))
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    if size > 1:
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= size
    optimizer.step()
    run.log(step=step, total={TOTAL}, loss=loss)
    if step % 5 == 0:
        with run.checkpoint(step) as folder:
            save(folder)
    if begun == 0 and step == 8 and (here / "hold").exists():
        (here / "started").touch()
        while not run.should_stop(every=1):
            time.sleep(0.01)
    if begun == 0 and step == 8 and (here / "kill").exists() and rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if run.should_stop():
        with run.checkpoint(step) as folder:
            save(folder)
        run.leave()
run.log(step=step, split="validation", accuracy=0.5)
digest = hashlib.sha256()
for parameter in model.parameters():
    digest.update(parameter.detach().numpy().tobytes())
if rank == 0:
    print("weights", digest.hexdigest(), flush=True)
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the script, where `stk` starts."""
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "train.py").write_text(TRAIN)
    return work


def stk(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(_stk(*words), capture_output=True, text=True, check=False)


def _stk(*words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "slurm", *words]


def train(procs: int, *words: str) -> list[str]:
    return [*words, "--procs", str(procs), "--", sys.executable, "train.py"]


def weights(output: str) -> str:
    (line,) = [line for line in output.splitlines() if line.startswith("weights")]
    return line


def undisturbed(procs: int) -> str:
    """The weights of a run that nothing happens to."""
    done = stk(*train(procs, "run", "name=undisturbed"))
    assert done.returncode == 0, done.stderr
    return weights(done.stdout)


def the_run() -> RunDir:
    found = find_runs(Path(os.environ["STK_EXPERIMENT_DIR"]))
    (run,) = [run for run in found if not run.run_id.startswith("undisturbed")]
    return run


def stop_when_held(process: subprocess.Popen[str], held: Path) -> None:
    """Send SIGTERM once the script waits for it, and wait for its end."""
    while not held.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate()


def stopped_run(work: Path, procs: int) -> RunDir:
    """A run that was stopped at step 8."""
    (work / "hold").touch()
    command = _stk(*train(procs, "run"))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    stop_when_held(process, work / "started")
    assert process.returncode == 130
    return the_run()


def steps(run: RunDir) -> list[int]:
    return [line["step"] for line in read_json_lines(run.metrics) if line["split"] == "train"]


@pytest.mark.parametrize("procs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_stopped_and_resumed_it_ends_with_the_same_weights(work: Path, procs: int) -> None:
    expected = undisturbed(procs)
    run = stopped_run(work, procs)
    assert run.checkpoint_steps() == [5, 8]
    (row,) = (row for row in json.loads(stk("status", "--json").stdout) if row["run_id"] == run.run_id)
    assert (row["step"], row["total_steps"], row["state"]) == (8, TOTAL, "cancelled")
    done = stk(*train(procs, "run"))
    assert done.returncode == 0, done.stderr
    assert weights(done.stdout) == expected
    assert steps(run) == list(range(1, TOTAL + 1))
    first, second = read_attempts(run)
    assert (first.first_step, first.last_step, first.saved, first.resumed) == (0, 8, True, False)
    assert (second.first_step, second.last_step, second.resumed) == (8, TOTAL, True)
    result = read_json(run.result)
    assert result["step"] == TOTAL
    assert result["metrics"]["validation"] == {"accuracy": 0.5}
    assert result["metrics"]["train"]["loss"] > 0
    spent = [each.spent for each in timeline(run, time.time())]
    assert all(each.training > 0 and each.starting > 0 and each.repeated == 0 for each in spent)
    assert spent[0].saving > 0
    assert "accuracy" in stk("report", run.run_id).stdout


@pytest.mark.slow
@pytest.mark.parametrize("procs", [1, 2])
def test_a_killed_rank_costs_the_steps_since_the_last_save(work: Path, procs: int) -> None:
    expected = undisturbed(procs)
    (work / "kill").touch()
    done = stk(*train(procs, "run"))
    assert done.returncode == 0, done.stderr
    run = the_run()
    assert weights(done.stdout) == expected
    assert steps(run) == list(range(1, TOTAL + 1))
    first, second = read_attempts(run)
    assert (first.why, first.last_step, second.first_step) == ("killed", 8, 5)
    assert timeline(run, time.time())[0].spent.repeated > 0


@pytest.mark.slow
def test_a_damaged_newest_checkpoint_falls_back_to_the_one_before(work: Path) -> None:
    expected = undisturbed(2)
    run = stopped_run(work, 2)
    state = run.checkpoint(8) / "state.pt"
    content = bytearray(state.read_bytes())
    content[len(content) // 2] ^= 1
    state.write_bytes(content)
    done = stk(*train(2, "run"))
    assert done.returncode == 0, done.stderr
    assert weights(done.stdout) == expected
    assert read_attempts(run)[-1].first_step == 5
    assert steps(run) == list(range(1, TOTAL + 1))


@pytest.mark.slow
def test_started_without_stk_it_works_alone(work: Path) -> None:
    expected = undisturbed(1)
    (work / "hold").touch()
    command = [sys.executable, "train.py"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    stop_when_held(process, work / "started")
    assert process.returncode == 75
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert weights(done.stdout) == expected
    alone = RunDir(Path(os.environ["STK_EXPERIMENT_DIR"]) / "alone" / "train")
    assert alone.checkpoint_steps() == [8, 10]
    assert steps(alone) == list(range(1, TOTAL + 1))


@pytest.mark.slow
def test_under_torchrun_without_stk_all_ranks_stop_together(work: Path) -> None:
    expected = undisturbed(2)
    (work / "train.py").write_text(
        TRAIN.replace("latest = run.latest_checkpoint()\n", "").replace(
            "torch.manual_seed(0)\n", "torch.manual_seed(0)\nlatest = run.latest_checkpoint()\n"
        )
    )
    (work / "hold").touch()
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "train.py"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    stop_when_held(process, work / "started")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert weights(done.stdout) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "line, kind",
    [
        ("run.log(step=1, loss='low')", "input"),
        ("run.checkpoint(-1).__enter__()", "input"),
        ("run.log(step=3, loss=1); raise ValueError('the 7th row')", "exception"),
    ],
)
def test_a_failure_is_told_by_its_class_and_its_step(work: Path, line: str, kind: str) -> None:
    (work / "train.py").write_text(f"import stk\nrun = stk.current_run()\n{line}\n")
    done = stk(*train(1, "run"))
    assert done.returncode == 4
    failure = read_json(the_run().failure)
    assert failure["class"] == kind
    assert failure["step"] == (3 if kind == "exception" else None)
    assert read_attempts(the_run())[-1].why == kind
