"""A run in a job of a pretend Slurm, as its rank 0 and its batch script find it."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from typing import Any

from slurm.job.decide_restart import decide
from slurm.status.submissions import record
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import User
from toolkit.config import to_yaml
from toolkit.files import append_json_line, read_json_lines
from toolkit.run.attempts.records import read_attempts
from toolkit.run.create_run import create_run
from toolkit.run.failure.records import failure_record, write_first
from toolkit.run.run_dir import RunDir

#: A minute ago: the job's start.
START = datetime.now() - timedelta(minutes=1)
PARTITIONS = "PartitionName=main Default=YES State=UP TotalNodes=4 PreemptMode=REQUEUE GraceTime=10\n"


def at(seconds: float) -> str:
    """A time as Slurm prints it, so long after the job's start."""
    return (START + timedelta(seconds=seconds)).isoformat(timespec="seconds")


class PretendJob:
    """The run `run` in the job `job_id`, of which Slurm says what `says` was told last."""

    def __init__(self, fake: FakeSlurm, user: User, *overrides: str, job_id: str = "101") -> None:
        self.fake = fake
        self.user = user
        self.job_id = job_id
        self.environ = {"SLURM_JOB_ID": job_id, "PATH": os.environ["PATH"]}
        experiment = user.experiment(*overrides)
        self.run: RunDir = create_run(experiment, user.experiments)
        self.run.job.write_text(to_yaml(experiment.resources))
        self.run.submitit.mkdir()
        record(self.run, cluster="slurm", job_id=job_id, name=f"{self.run.run_id}.0")
        fake.add(job_id, state="RUNNING", work_dir=str(self.run.path), name=f"{self.run.run_id}.0")
        fake.answers("--all --oneliner show partition", PARTITIONS)
        self.says()

    def says(self, **changes: str) -> None:
        """What `scontrol show job` says: the job runs undisturbed, but for the changes."""
        facts = {
            "JobId": self.job_id,
            "JobState": "RUNNING",
            "Reason": "None",
            "Restarts": "0",
            "BatchFlag": "1",
            "Partition": "main",
            "TimeLimit": "01:00:00",
            "StartTime": at(0),
            "EndTime": at(3600),
            "PreemptTime": "None",
        }
        text = " ".join(f"{name}={value}" for name, value in (facts | changes).items())
        self.fake.answers(f"--all show job {self.job_id}", text)

    def is_preempted(self) -> None:
        self.says(PreemptTime=at(60), EndTime=at(70))

    def is_cancelled(self) -> None:
        self.says(JobState="COMPLETING", EndTime=at(60))

    def is_back(self) -> None:
        self.says(JobState="COMPLETING", Restarts="1", EndTime="Unknown", StartTime="Unknown")

    def starts(self, **facts: Any) -> None:
        """attempts.jsonl gets a line of the job's start."""
        number = len(read_attempts(self.run)) + 1
        nonce = f"{self.job_id}.0.{number - 1}"
        line = {"attempt": number, "job_id": self.job_id, "restart": 0, "nonce": nonce, "hosts": ["here"]}
        append_json_line(self.run.attempts, {**line, "time_start": 1000.0 * number, "first_step": 0, **facts})

    def after(self, code: int) -> str:
        """What the batch script does after a step that ended with this exit status."""
        return decide(self.run, code, self.environ, 0.0).text

    def stops(self, why: str = "SIGTERM", step: int = 5) -> None:
        """As `starts`, and it saved and left."""
        self.starts(time_end=1500.0, last_step=step, why=why)

    @property
    def requeues(self) -> list[list[str]]:
        return [call for call in self.fake.calls("scontrol") if call[0] == "requeue"]

    @property
    def submitted(self) -> list[str]:
        """Job ids of all submissions."""
        return [line["job_id"] for line in read_json_lines(self.run.submissions)]

    @property
    def why(self) -> str:
        """Why the newest start ended, by attempts.jsonl."""
        return str(read_attempts(self.run)[-1].why)

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        return [line for line in read_json_lines(self.run.events) if line["event"] in kinds]

    @property
    def outcome(self) -> str:
        """The last event that says what became of the stop."""
        kinds = ("requeue", "chained", "cancelled", "not_requeued", "requeue_failed")
        return str(self.events(*kinds)[-1]["event"])

    def script(self, job_id: str) -> str:
        return (self.run.submitit / f"{job_id}_submission.sh").read_text()

    def failure(self, kind: str, step: int = 3) -> None:
        """failure.json as a rank of this start writes it."""
        nonce = read_attempts(self.run)[-1].nonce
        record = failure_record(nonce, kind, "boom", rank=0, host="here", phase="forward", step=step)
        self.run.ranks(nonce).parent.mkdir(exist_ok=True)
        assert write_first(self.run, record)
