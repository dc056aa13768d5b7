"""One experiment file, and the commands that submit it: ours, submitit's and Hydra's."""

from __future__ import annotations

import sys
from pathlib import Path

STK = (sys.executable, "-m", "slurm")
HYDRA = "Hydra's submitit launcher"
HYDRA_NEEDS = ("hydra", "hydra_plugins")
#: Keys that Hydra's app and `stk` both read.
_EXPERIMENT = """\
name: swept
seed: 0
task: {kind: text_classification}
model: {kind: docnn}
data: {path: FOLDER/texts.tsv, prepared_dir: FOLDER/prepared}
"""


def write_experiment(folder: Path) -> Path:
    """Write an experiment and its table of texts; return the file.

    Its labels are frequent, as in most tables. For rare labels, `stk` imports NumPy to check the splits.
    """
    rows = "".join(f"text number {number}\t{'ab'[number % 2]}\n" for number in range(1000))
    (folder / "texts.tsv").write_text(f"text\tlabel\n{rows}")
    file = folder / "swept.yaml"
    file.write_text(_EXPERIMENT.replace("FOLDER", str(folder)))
    return file


def submitit(folder: Path, calls: int) -> list[str]:
    """Return the command that submits `calls` calls of a function in one array."""
    return [sys.executable, "-m", "benchmarks.login.with_submitit", str(folder), str(calls)]


def hydra(file: Path, folder: Path, seeds: str) -> list[str]:
    """Return the command that submits the experiment with these seeds in one array."""
    config = ["--config-dir", str(file.parent), "--config-name", file.stem]
    settings = ["hydra/launcher=submitit_slurm", f"hydra.sweep.dir={folder}", f"seed={seeds}"]
    return [sys.executable, "-m", "benchmarks.login.with_hydra", *config, "--multirun", *settings]
