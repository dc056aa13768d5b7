"""Time a sweep up to its submission, beside a loop of `stk submit` and submitit's `map_array`.

    python benchmarks/sweep.py [--runs 1000] [--singles 10]

sbatch, squeue and scontrol are stubs that answer at once, so what is timed is this side of Slurm: checking,
making folders, writing them down. submitit pickles the same number of calls of a function and knows no
configs, checks, copies of the code or records. Printed: wall time and CPU time of the processes, for all runs
and for each; those of the loop are extrapolated from a few submissions.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_STUBS = {
    "sbatch": 'case "$*" in *--parsable*) echo "$$";; *) echo "Submitted batch job $$";; esac',
    "squeue": "",
    "scontrol": 'case "$*" in ping) echo "Slurmctld(primary) at head is UP";;\n'
    '*config*) echo "MaxArraySize = 100001";; esac',
    "sinfo": "",
    "srun": "",
}
_EXPERIMENT = """\
name: swept
task: {kind: text_classification}
model: {kind: docnn}
data: {path: texts.tsv, prepared_dir: prepared}
"""
_SUBMITIT = """\
import operator, submitit
executor = submitit.SlurmExecutor(folder="submitit")
executor.update_parameters(time=10, array_parallelism=16)
jobs = executor.map_array(operator.neg, range({runs}))
assert len(jobs) == {runs}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--singles", type=int, default=10, help="submissions that stand for the loop")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = _prepare(Path(folder))
        seeds = ",".join(map(str, range(arguments.runs)))
        stk = [sys.executable, "-m", "slurm"]
        sweep = _time([[*stk, "sweep", "swept.yaml", f"seed={seeds}"]], folder, environment)
        firsts = range(arguments.runs, arguments.runs + arguments.singles)
        loop = _time([[*stk, "submit", "swept.yaml", f"seed={seed}"] for seed in firsts], folder, environment)
        script = _SUBMITIT.format(runs=arguments.runs)
        peer = _time([[sys.executable, "-c", script]], folder, environment)
    _tell("stk sweep", sweep, arguments.runs, arguments.runs)
    _tell("stk submit, one after the other", loop, arguments.singles, arguments.runs)
    _tell("submitit map_array", peer, arguments.runs, arguments.runs)


def _prepare(folder: Path) -> dict[str, str]:
    """Write stubs of Slurm's programs and an experiment; the environment that finds them."""
    programs = folder / "bin"
    programs.mkdir()
    for name, body in _STUBS.items():
        (programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (programs / name).chmod(0o755)
    (folder / "swept.yaml").write_text(_EXPERIMENT)
    rows = "".join(f"text number {number}\t{'ab'[number % 2]}\n" for number in range(100))
    (folder / "texts.tsv").write_text(f"text\tlabel\n{rows}")
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    own = {"PATH": path, "PYTHONPATH": str(_ROOT), "STK_EXPERIMENT_DIR": str(folder / "experiments")}
    return {**os.environ, **own}


def _time(commands: list[list[str]], folder: str, environment: dict[str, str]) -> tuple[float, float]:
    """Wall time and CPU time of commands, in seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    for command in commands:
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    wall_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _tell(name: str, taken: tuple[float, float], measured: int, runs: int) -> None:
    wall_s, cpu_s = (each / measured for each in taken)
    note = "" if measured == runs else f"   (from {measured})"
    print(
        f"{name:32}  {runs * wall_s:8.2f} s wall  {runs * cpu_s:8.2f} s CPU for {runs} runs   "
        f"{1e3 * wall_s:7.2f} ms wall  {1e3 * cpu_s:7.2f} ms CPU for each{note}"
    )


if __name__ == "__main__":
    main()
