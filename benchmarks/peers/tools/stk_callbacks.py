"""The scripts of other tools with one more line, a callback that makes them runs of this project."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

from cluster import command
from jobs.settings import RANKS, WARNING_S

from tools.peers import CODE, Peer
from tools.stk import newest_job, run_of
from tools.tool import Submission


class _WithCallback(Peer):
    """The script of another tool, submitted with `stk submit`."""

    script: str

    def submit(self, submission: Submission) -> str:
        """Submit the run, or resume it if it exists, as a user would; return the job id."""
        folder = submission.folder
        environment = {
            **self._environment(submission),
            "STK_EXPERIMENT_DIR": str(folder / "runs"),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }
        if (run := run_of(folder)).exists():
            words = ["resume", run.name, "--json"]
        else:
            launches = f"date +%s.%N >> {shlex.quote(str(folder))}/launches"
            resources = {
                "tasks_per_node": RANKS,
                "partition": submission.partition,
                "time": str(submission.minutes),
                "signal_s": WARNING_S,
                "exclusive": True,
                "max_crashes": 1000,
                "setup": [launches],
            }
            options = ["name=peers", "code=[]", f"resources={json.dumps(resources)}"]
            words = ["submit", "--json", *options, "--", self._python, f"{CODE}/{self.script}"]
            words += [str(folder), "--stk"]
        return str(json.loads(command("stk", *words, env=environment))["job_id"])

    def current_job(self, folder: Path, job_id: str) -> str:
        """Return the newest job: before a time limit and after a crash, a new job continues the run."""
        return newest_job(folder, job_id)

    def damageable(self, folder: Path) -> Path:
        raise NotImplementedError

    def drop_newest(self, folder: Path) -> None:
        raise NotImplementedError


class StkTrainer(_WithCallback):
    """The Trainer of transformers with stk.transformers.RunCallback."""

    name, package, title, script = "stk-hf", "transformers", "stk, HF Trainer", "hf_train.py"


class StkLightning(_WithCallback):
    """Lightning with stk.lightning.RunCallback."""

    name, package, title, script = "stk-lightning", "lightning", "stk, Lightning", "lightning_train.py"
