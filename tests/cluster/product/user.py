"""Somebody who uses the product: a home folder, an experiment or two, and a shell on the login node."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.cluster import Cluster
from tests.cluster.errors import CommandFailed
from tests.cluster.waiting import wait_until
from tests.support.patience import PATIENCE_S
from tests.support.registering import UNDRAWN, own_environment
from tests.toolkit.support.tiny import metrics_lines
from toolkit.files import read_json, read_json_lines
from toolkit.run.run_dir import RunDir, find_runs

from . import probe

SCRIPTS = Path(__file__).parents[3] / "scripts"

#: metrics.jsonl without what is a matter of the clock.
curve = metrics_lines

ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY")

_EXPERIMENT = """\
name: {name}
task: {{kind: text_classification}}
model: {{kind: docnn, embedding_dim: 8, kernels: [3], filters: 8}}
data:
  path: {table}
  prepared_dir: {prepared}
train: {{epochs: {epochs}, batch_size: 16, log_per_epoch: 10, device: cpu}}
resources: {{cpus_per_task: 1}}
"""

#: Notes when it was called, its name and first arguments, and becomes the program itself.
_NOTED = """\
#!/bin/sh
echo "$(date +%s.%N) {name} $1 $2 $3" >> '{calls}'
exec '{program}' "$@"
"""

#: Epochs of ten steps: quick ones cost little more than their start; long ones last some seconds, so that
#: something can happen to them meanwhile.
EPOCHS = {"quick": 2, "long": 20}


def slowly(step_s: float, *, attempts: Sequence[int] = (1,)) -> dict[str, str]:
    """Let each step of these attempts of a run take longer, so that something can happen to it meanwhile.

    However slow the machine, the run must still be at it when its turn comes; what it computes is the same.
    """
    return {"STK_FAULTS": "; ".join(f"slow {step_s} at=data attempt={attempt}" for attempt in attempts)}


class User:
    """Runs commands on the login node of a cluster, with runs under `home`/experiments."""

    def __init__(self, cluster: Cluster, table: Path, home: Path) -> None:
        self.cluster = cluster
        self.home = home
        self.runs = home / "experiments"
        self._calls = home / "calls"
        home.mkdir(parents=True, exist_ok=True)
        for name, epochs in EPOCHS.items():
            # JSON strings are YAML: any path can be written so.
            paths = {"table": json.dumps(str(table)), "prepared": json.dumps(str(table.parent / "prepared"))}
            text = _EXPERIMENT.format(name=name, epochs=epochs, **paths)
            (home / f"{name}.yaml").write_text(text, encoding="utf-8")

    @property
    def environment(self) -> dict[str, str]:
        """The environment of this user's shell, with the command stk on PATH."""
        own = own_environment()
        programs = str(Path(sys.executable).parent)
        return {
            **own,
            **self.cluster.environment,
            "PATH": os.pathsep.join([programs, own["PATH"]]),
            "PYTHONPATH": str(UNDRAWN),
            "STK_EXPERIMENT_DIR": str(self.runs),
        }

    # ---- commands

    def run(
        self,
        *command: str | Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        check: bool = True,
        timeout_s: float = PATIENCE_S,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in this user's home; with `check`, raise CommandFailed for a bad exit code."""
        result = subprocess.run(
            command,
            env=self.environment | dict(env or {}),
            cwd=cwd or self.home,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if check and result.returncode != 0:
            raise CommandFailed(result)
        return result

    def start(self, *command: str | Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a command and let it run."""
        return subprocess.Popen(
            command,
            env=self.environment | dict(env or {}),
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def write_program(self, file: Path, text: str) -> Path:
        """Write an executable file, in a folder that need not be there; return it."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)
        return file

    def stand_before(self, program: str, script: str) -> dict[str, str]:
        """Put a script in the place of a program; returns the environment in which it is found first."""
        file = self.write_program(self.home / "programs" / program, script)
        return {"PATH": os.pathsep.join([str(file.parent), self.environment["PATH"]])}

    def note_calls(self, *programs: str) -> dict[str, str]:
        """The environment in which each call of these programs is noted from now on."""
        self._calls.unlink(missing_ok=True)
        env: dict[str, str] = {}
        for name in programs:
            script = _NOTED.format(name=name, calls=self._calls, program=shutil.which(name))
            env |= self.stand_before(name, script)
        return env

    def calls(self, *programs: str) -> list[str]:
        """The noted calls of these programs: time, name, first arguments."""
        noted = self._calls.read_text().splitlines() if self._calls.exists() else []
        return [line for line in noted if line.split(" ")[1] in programs]

    def stk_json(self, *arguments: str, env: Mapping[str, str] | None = None) -> Any:
        """What a command answers with --json."""
        return json.loads(self.run("stk", *arguments, "--json", env=env).stdout)

    def submit(
        self, experiment: str, *overrides: str, env: Mapping[str, str] | None = None
    ) -> tuple[RunDir, str]:
        """Submit quick or long; return its run and job id."""
        answer = self.stk_json("submit", f"{experiment}.yaml", *overrides, env=env)
        return RunDir(Path(answer["run_dir"])), answer["job_id"]

    def submit_command(self, *words: str) -> tuple[RunDir, str]:
        """Submit `[OPTIONS] -- COMMAND`; return its run and job id."""
        answer = json.loads(self.run("stk", "submit", "--json", *words).stdout)
        return RunDir(Path(answer["run_dir"])), answer["job_id"]

    def sbatch(
        self, *arguments: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> str:
        """Submit a batch script whose output goes to this user's home; return the job's id."""
        fixed = ("--parsable", f"--output={self.home}/%j.out")
        return self.run("sbatch", *fixed, *arguments, env=env, cwd=cwd).stdout.strip()

    def preempt(self, *hosts: str) -> str:
        """Take hosts for something urgent that needs all of their GPUs; return its job's id."""
        place = (f"--nodes={len(hosts)}", f"--nodelist={','.join(hosts)}", "--gres=gpu:4", "--time=5")
        return self.sbatch("--partition=urgent", *place, "--wrap=true")

    def status(self, run: RunDir) -> dict[str, Any]:
        """What `stk status` says of a run."""
        (row,) = self.stk_json("status", run.run_id)
        return dict(row)

    def only_run(self) -> RunDir:
        """The one run of this user."""
        (run,) = find_runs(self.runs)
        return run

    def job_folders(self) -> list[str]:
        """The working folders of this user's jobs, ended ones too."""
        every = self.run("squeue", "--noheader", "--states=all", "--format=%Z").stdout.splitlines()
        return [folder for folder in every if Path(folder).is_relative_to(self.home)]

    # ---- the probe

    def install_probe(self) -> Path:
        """Put the probe before every Python process of this user's jobs; return its folder."""
        folder = self.home / "probe"
        folder.mkdir(exist_ok=True)
        shutil.copy(probe.__file__, folder / "sitecustomize.py")
        return folder

    def environments(self) -> dict[int, dict[str, str]]:
        """What the probe found in ranks that have ended, by process id."""
        found = (self.home / "probe").glob("environment.*.json")
        return {int(file.suffixes[0][1:]): json.loads(file.read_text()) for file in found}

    def environments_of_ranks(self) -> list[dict[str, str]]:
        """The same by rank, where there was one attempt."""
        return sorted(self.environments().values(), key=lambda environment: int(environment["RANK"]))

    # ---- waiting

    def wait_for_step(self, run: RunDir) -> None:
        """Return when the run is training and has some steps behind it."""
        steps_before = max((line["step"] for line in read_json_lines(run.metrics)), default=0)

        def is_training() -> bool:
            # A view of where it stands, which may be of an earlier attempt.
            lines = [line["step"] for line in read_json_lines(run.metrics)]
            return bool(lines) and max(lines) > steps_before

        wait_until(is_training, lambda: f"no step: {self.story(run)}")

    def wait_for_end(self, job_id: str) -> str:
        """Return the job's state once it has ended for good."""
        return self.cluster.wait_for_state(job_id, ENDED)["JobState"]

    def wait_until_finished(self, run: RunDir, job_id: str) -> None:
        """Return when the job has ended COMPLETED and the run has finished; complain with its story."""
        state = self.wait_for_end(job_id)
        assert (state, run.result.exists()) == ("COMPLETED", True), self.story(run)

    def story(self, run: RunDir) -> str:
        """What there is to read about a run, for a test that fails."""
        logs = [f"{file.name}: …{file.read_text()[-1500:]}" for file in sorted(run.logs.glob("*.log"))]
        # Whether the job that goes on has started, what it waits for, and who has the hosts. Where no
        # controller answers, the rest is to be read all the same.
        queue = self.run("squeue", "--format=%i %T %r %P %j %N %S %Z", check=False).stdout
        hosts = self.run("sinfo", "--Node", "--format=%N %T %C %E", check=False).stdout
        found = [str(read_json(run.failure)), *map(str, read_json_lines(run.events)), *logs, queue, hosts]
        return "\n".join(found)


@dataclass(frozen=True, slots=True)
class Users:
    """Makes users, each with a home of its own."""

    cluster: Cluster
    table: Path
    folder: Path

    def user(self, name: str) -> User:
        return User(self.cluster, self.table, self.folder / name)


def weights(run: RunDir) -> bytes:
    """The weights that a run ended with."""
    return (run.last / "model.safetensors").read_bytes()


def assert_same_training(run: RunDir, other: RunDir) -> None:
    """Two runs have the same metrics on the way, and end with the same weights."""
    assert curve(run) == curve(other)
    assert weights(run) == weights(other)


def starts(run: RunDir) -> list[dict[str, Any]]:
    """The attempts of a run, each with its end if it came to one."""
    attempts: dict[int, dict[str, Any]] = {}
    for line in read_json_lines(run.attempts):
        attempts.setdefault(line["attempt"], {}).update(line)
    return list(attempts.values())


def ranks(run: RunDir) -> list[dict[str, Any]]:
    """Who the ranks of the newest attempt were."""
    return list(read_json_lines(run.ranks(starts(run)[-1]["nonce"])))


def host_numbers(run: RunDir) -> list[int]:
    """The hosts of the ranks of the newest attempt, numbered as they first appear."""
    hosts = [rank["host"] for rank in ranks(run)]
    order = list(dict.fromkeys(hosts))
    return [order.index(host) for host in hosts]
