"""A user with a small experiment in a working folder, who calls `stk` there."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest

from slurm.cli import main
from slurm.status.submissions import submissions
from tests.support.patience import PATIENCE_S
from tests.support.registering import ROOT as ROOT
from toolkit.config import load, run_id
from toolkit.config.schema import Experiment
from toolkit.exit_codes import ExitCode
from toolkit.run.run_dir import RunDir, find_runs

#: Where processes that tests start find this very code, and the toy workload.
CODE = {"PYTHONPATH": os.environ["PYTHONPATH"]}
CONFIG = """\
name: tiny
task: {kind: toy_texts}
model: {kind: convolutions, embedding_dim: 4, filters: 3, kernels: [2]}
data: {path: reviews.tsv, prepared_dir: prepared}
train: {epochs: 1, batch_size: 32}
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command returned and printed."""

    code: int
    out: str
    err: str


class User:
    """Works in `root`; runs go to `experiments`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.config = root / "tiny.yaml"
        self.config.write_text(CONFIG)
        self.experiments = root / "experiments"
        (root / "reviews.tsv").write_text(reviews())

    def write(self, name: str, text: str) -> Path:
        """A file below the working folder."""
        path = self.root / name
        path.write_text(text, encoding="utf-8")
        return path

    def experiment(self, *overrides: str) -> Experiment:
        return load(self.config, overrides)

    def run(self, *overrides: str) -> RunDir:
        """The folder that the experiment's run has, or will have."""
        return RunDir(self.experiments / run_id(self.experiment(*overrides)))

    @property
    def job_ids(self) -> list[str]:
        """Job ids of the run's submissions."""
        return [submission.job_id for submission in submissions(self.run())]

    @property
    def runs(self) -> list[str]:
        """The runs that are there."""
        return [run.run_id for run in find_runs(self.experiments)]

    @property
    def listing(self) -> list[str]:
        """Every path in the working folder, the prepared data left out."""
        found = (str(path.relative_to(self.root)) for path in self.root.rglob("*"))
        return sorted(path for path in found if not path.startswith(("prepared", "bin")))

    def stk(self, *arguments: object) -> Answer:
        """The command in this process."""
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            try:
                code = main([str(argument) for argument in arguments])
            except SystemExit as exit:
                code = int(exit.code or 0)
        return Answer(code, out.getvalue(), err.getvalue())

    def told(self, *arguments: object) -> str:
        """The output of the command, which must succeed."""
        answer = self.stk(*arguments)
        assert answer.code == 0, answer
        return answer.out

    def refused(self, *arguments: object, code: int = ExitCode.WRONG_INPUT) -> str:
        """The error of the command, which must end with this exit code."""
        answer = self.stk(*arguments)
        assert answer.code == code, answer
        return answer.err

    def start(self, *arguments: object, environ: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """The command in a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "slurm", *map(str, arguments)],
            cwd=self.root,
            env={**os.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, *arguments: object, environ: Mapping[str, str] | None = None) -> Answer:
        """The command in a process of its own, to its end."""
        process = self.start(*arguments, environ=environ)
        out, err = process.communicate(timeout=PATIENCE_S)
        return Answer(process.returncode, out, err)


#: What would steer the command from outside.
_FOREIGN = ("SLURM_JOB_ID", "RANK", "WORLD_SIZE", "STK_FORCE_LOCAL", "STK_CONFIG_DIR", "STK_FAULTS")


@contextmanager
def surroundings(root: Path) -> Iterator[pytest.MonkeyPatch]:
    """An environment in which no program of Slurm is found, and nothing says where we are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(root))
        for name in _FOREIGN:
            patch.delenv(name, raising=False)
        yield patch


@contextmanager
def user_in(root: Path) -> Iterator[User]:
    """A user in the current folder, without Slurm."""
    with surroundings(root) as patch:
        patch.chdir(root)
        patch.setenv("STK_EXPERIMENT_DIR", str(root / "experiments"))
        yield User(root)


def reviews(rows: int = 120) -> str:
    """A table of texts whose first word tells the label."""
    generator = random.Random(0)
    words = {"good": ["fine", "great", "lovely"], "bad": ["poor", "dull", "awful"]}
    rest = ["movie", "plot", "actor", "scene", "the", "a", "of"]
    lines = ["text\tlabel"]
    for number in range(rows):
        label = ("good", "bad")[number % 2]
        text = [generator.choice(words[label]), *generator.choices(rest, k=generator.randint(2, 8))]
        lines.append(f"{' '.join(text)}\t{label}")
    return "\n".join(lines) + "\n"
