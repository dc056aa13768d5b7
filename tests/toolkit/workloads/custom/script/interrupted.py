"""Runs of a training script: undisturbed, stopped by a signal, or with a killed rank.

The script prints `weights` and a digest. It calls `reached(step)` of `moments.py` after each step: with a
file `hold` beside it the first attempt waits at step 8 until it is asked to leave; with `kill` its last rank
is killed there.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from toolkit.files import read_json_lines
from toolkit.run.attempts.records import read_attempts
from toolkit.run.run_dir import RunDir, find_runs

TOTAL = 12
STEP = 8
ALL_STEPS = list(range(1, TOTAL + 1))
_UNDISTURBED: dict[tuple[str, int], str] = {}

MOMENTS = f"""
import hashlib, os, signal, time
from pathlib import Path
import stk

here = Path(os.environ["STK_EXPERIMENT_DIR"]).parent / "work"
rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
begun = []


def reached(step):
    begun.append(step)
    if begun[0] > 1 or step != {STEP}:
        return
    if (here / "kill").exists() and rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if (here / "hold").exists():
        (here / "started").touch()
        while not stk.current_run().should_stop(every=1):
            time.sleep(0.01)


def tell(model):
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    if rank == 0:
        print("weights", digest.hexdigest(), flush=True)
"""


class Interrupted:
    """The script in an empty folder, and what happens to its runs."""

    def __init__(self, folder: Path, script: str) -> None:
        self._runs = folder / "runs"
        self.work = folder / "work"
        self.work.mkdir()
        (self.work / "train.py").write_text(script)
        (self.work / "moments.py").write_text(MOMENTS)

    def stk(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self._call([sys.executable, "-P", "-m", "slurm", *words])

    def train(self, procs: int, *words: str) -> str:
        """Start the run, or let it go on; return the line of its weights."""
        done = self.stk(*self._words(procs, *words))
        assert done.returncode == 0, done.stderr + done.stdout
        return weights(done.stdout)

    def undisturbed(self, procs: int, like: str = "") -> str:
        """The line of the weights of an undisturbed run, which is made once for each script.

        like   another script with the same weights, which an earlier test may have trained
        """
        script = self.work / "train.py"
        own = script.read_text()
        key = like or own, procs
        if key not in _UNDISTURBED:
            script.write_text(key[0])
            # Alone means without `stk`, which takes half the time.
            _UNDISTURBED[key] = (
                self.alone([sys.executable, "train.py"], runs="undisturbed")
                if procs == 1
                else self.train(procs, "name=undisturbed")
            )
            script.write_text(own)
        return _UNDISTURBED[key]

    def stopped(self, procs: int) -> RunDir:
        """A run that was stopped at step 8."""
        (self.work / "hold").touch()
        process = self.start([sys.executable, "-P", "-m", "slurm", *self._words(procs)])
        assert self.stop(process) == 130
        return self.run

    def start(self, command: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            cwd=self.work,
            env=self._environ(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def stop(self, process: subprocess.Popen[str]) -> int:
        """Send SIGTERM once the script waits for it; return the exit status."""
        while not (self.work / "started").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate()
        print(output)
        return process.returncode

    def alone(self, command: list[str], runs: str = "runs") -> str:
        """Run a command without `stk`, with this folder for runs; return the line of the weights."""
        done = self._call(command, STK_EXPERIMENT_DIR=str(self._runs.with_name(runs)))
        assert done.returncode == 0, done.stderr
        return weights(done.stdout)

    @property
    def run(self) -> RunDir:
        """The run that is not the undisturbed one."""
        (run,) = [run for run in find_runs(self._runs) if not run.run_id.startswith("undisturbed")]
        return run

    def _words(self, procs: int, *words: str) -> list[str]:
        return ["run", *words, "--procs", str(procs), "--", sys.executable, "train.py"]

    def _call(self, command: list[str], **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.work, env=self._environ() | environ, capture_output=True, text=True, check=False
        )

    def _environ(self) -> dict[str, str]:
        return os.environ | {"STK_EXPERIMENT_DIR": str(self._runs), "OMP_NUM_THREADS": "1"}


def weights(output: str) -> str:
    """The line that the script prints at its end; an attempt that dies after that prints it once more."""
    (line,) = {line for line in output.splitlines() if line.startswith("weights")}
    return line


def logged_steps(run: RunDir, split: str = "train") -> list[int]:
    """The steps of all lines of a split."""
    return [line["step"] for line in read_json_lines(run.metrics) if line["split"] == split]


def assert_goes_on_after_a_stop(script: Interrupted, procs: int, *, saved: int, like: str = "") -> RunDir:
    """Stopped at step 8, it ends with the weights of an undisturbed run, and does each step once.

    saved  the step of the checkpoint before
    like   as in Interrupted.undisturbed
    """
    expected = script.undisturbed(procs, like)
    run = script.stopped(procs)
    assert run.checkpoint_steps() == [saved, STEP]
    assert script.train(procs) == expected
    first, second = read_attempts(run)
    assert (first.last_step, second.first_step, second.last_step) == (STEP, STEP, TOTAL)
    assert logged_steps(run) == ALL_STEPS
    return run


def assert_goes_on_after_a_kill(script: Interrupted, procs: int, *, saved: int) -> RunDir:
    """Killed at step 8, it goes on from its newest checkpoint to the weights of an undisturbed run."""
    expected = script.undisturbed(procs)
    (script.work / "kill").touch()
    assert script.train(procs) == expected
    first, second = read_attempts(script.run)
    assert (first.why, second.first_step) == ("killed", saved)
    assert logged_steps(script.run) == ALL_STEPS
    return script.run
