"""The other tools: how to submit each, and where to find its checkpoints, steps and ranks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from cluster import command
from jobs.marks import MARKS
from jobs.settings import WARNING_S

from tools.start import Start
from tools.tool import Step, Submission, json_lines

CODE = Path(__file__).resolve().parents[1] / "jobs"


class Peer:
    """A tool whose script uses workload.Notes."""

    name: str
    package: str
    title: str

    def __init__(self, python: str) -> None:
        self._python = python
        version = f"import importlib.metadata as m; print(m.version({self.package!r}))"
        self.label = f"{self.title} {command(python, '-c', version)}"

    def current_job(self, folder: Path, job_id: str) -> str:
        return job_id

    def steps(self, folder: Path) -> list[Step]:
        return [
            Step(step=line["step"], time=line["time"], start=str(line["pid"]))
            for line in json_lines(folder / "steps.jsonl")
        ]

    def ranks(self, folder: Path) -> dict[int, int]:
        found = [json.loads(file.read_text()) for file in (folder / "processes").glob("*.json")]
        return {line["rank"]: line["pid"] for line in sorted(found, key=lambda line: float(line["time"]))}

    def starts(self, folder: Path) -> list[Start]:
        marks: dict[str, list[dict[str, Any]]] = {}
        for line in json_lines(folder / MARKS):
            marks.setdefault(str(line["pid"]), []).append(line)
        return [_start(name, lines) for name, lines in marks.items()]

    def checkpoints(self, folder: Path) -> Path:
        return folder / "checkpoints"

    def digest(self, folder: Path) -> str | None:
        file = folder / "finished.json"
        return json.loads(file.read_text())["sha256"] if file.exists() else None

    def _environment(self, submission: Submission) -> dict[str, str]:
        return {
            "PEERS_PYTHON": self._python,
            "PEERS_CODE": str(CODE),
            "PEERS_STEP_MS": str(submission.step_ms),
            "PYTHONPATH": str(CODE),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
        }

    def _sbatch(self, submission: Submission, script: str, *arguments: str, signal: str | None = None) -> str:
        options = [
            f"--partition={submission.partition}",
            f"--time={submission.minutes}",
            f"--output={submission.folder}/%j.log",
            *([f"--signal={signal}"] if signal else []),
        ]
        words = [*options, f"{CODE}/{script}", str(submission.folder), *arguments]
        return command("sbatch", "--parsable", *words, env=self._environment(submission))


def _start(name: str, lines: list[dict[str, Any]]) -> Start:
    times = {line["mark"]: line["time"] for line in lines if line["mark"] != "save"}
    saves = tuple((line["begun"], line["time"]) for line in lines if line["mark"] == "save")
    return Start(name=name, began=lines[0]["began"], saves=saves, **times)


class Submitit(Peer):
    name, package, title = "submitit", "submitit", "submitit"

    def submit(self, submission: Submission) -> str:
        arguments = (str(submission.folder), submission.partition, str(submission.minutes))
        environment = self._environment(submission)
        return command(self._python, f"{CODE}/submitit_submit.py", *arguments, env=environment)

    def damageable(self, folder: Path) -> Path:
        return self.checkpoints(folder) / "training.pt"

    def drop_newest(self, folder: Path) -> None:
        self.damageable(folder).unlink()


class Lightning(Peer):
    name, package, title = "lightning", "lightning", "Lightning"

    def submit(self, submission: Submission) -> str:
        return self._sbatch(submission, "lightning.sh")

    def damageable(self, folder: Path) -> Path:
        found = [*folder.glob("hpc_ckpt_*.ckpt"), *self.checkpoints(folder).glob("last*.ckpt")]
        return max(found, key=lambda file: file.stat().st_mtime)

    def drop_newest(self, folder: Path) -> None:
        self.damageable(folder).unlink()


class LightningTorchrun(Lightning):
    """Lightning under torchrun, which restarts all ranks if one dies; without SLURMEnvironment."""

    name, title = "lightning-torchrun", "Lightning under torchrun"

    def submit(self, submission: Submission) -> str:
        return self._sbatch(submission, "lightning_torchrun.sh")

    def _environment(self, submission: Submission) -> dict[str, str]:
        return {**super()._environment(submission), "PEERS_RESTARTS": "1000"}


class HuggingFace(Peer):
    name, package, title = "hf", "transformers", "HF Trainer"

    def submit(self, submission: Submission) -> str:
        return self._sbatch(submission, "hf.sh")

    def damageable(self, folder: Path) -> Path:
        return self._newest(folder) / "model.safetensors"

    def drop_newest(self, folder: Path) -> None:
        shutil.rmtree(self._newest(folder))

    def _newest(self, folder: Path) -> Path:
        found = self.checkpoints(folder).glob("checkpoint-*")
        return max(found, key=lambda path: int(path.name.partition("-")[2]))


class HuggingFaceRestarts(HuggingFace):
    """Trainer under a torchrun that restarts all ranks if one dies."""

    name, title = "hf-restarts", "HF Trainer, torchrun --max-restarts"

    def _environment(self, submission: Submission) -> dict[str, str]:
        return {**super()._environment(submission), "PEERS_RESTARTS": "1000"}


class HuggingFaceJit(HuggingFace):
    """Trainer with its checkpoint on SIGTERM, which needs --signal=TERM according to its documentation."""

    name, title = "hf-jit", "HF Trainer with JIT checkpoint"

    def submit(self, submission: Submission) -> str:
        return self._sbatch(submission, "hf.sh", "--jit", signal=f"TERM@{WARNING_S}")
