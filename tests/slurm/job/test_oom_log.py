"""What Slurm says of memory that ran out, in its own words."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm.job.decide_restart import crash_hint, decide
from tests.slurm.support.pretend_job import PretendJob
from toolkit.files import read_json
from toolkit.run.attempts.crash_record import CrashHint

EVENT = "slurmstepd: error: Detected 1 oom_kill event in StepId=101.0."
OLDER = "slurmstepd: error: Detected 2 oom-kill event(s) in StepId=101.0 cgroup."


@pytest.mark.parametrize(
    "text, expected",
    [
        ("srun: error: w2: task 3: Out Of Memory\n", CrashHint(kind="oom_killed", rank=3)),
        ("srun: error: w[2-3]: tasks 2-3,7: Out Of Memory\n", CrashHint(kind="oom_killed", rank=2)),
        (f"{EVENT}\n", CrashHint(kind="oom_killed")),
        (f"{OLDER}\nsrun: error: w2: task 1: Out Of Memory\n", CrashHint(kind="oom_killed", rank=1)),
        ("srun: error: w2: task 3: Killed\n", CrashHint()),
        (
            "slurmstepd: error: Step 101.0 exceeded memory limit (2 > 1), being killed\n",
            CrashHint(kind="oom_killed"),
        ),
        ("", CrashHint()),
        # Of an earlier attempt of the same job.
        (f"{EVENT}\nstk: starting again: oom_killed\nsrun: error: w2: task 3: Killed\n", CrashHint()),
    ],
)
def test_only_the_last_step_of_the_log_counts(tmp_path: Path, text: str, expected: CrashHint) -> None:
    log = tmp_path / "101.batch.log"
    log.write_text(text)
    assert crash_hint(log) == expected


def test_a_rank_that_ran_out_of_memory_is_named_and_started_once_more(job: PretendJob) -> None:
    job.starts()
    job.run.job_log("101").write_text("srun: error: here: task 1: Out Of Memory\n")
    assert "starting again: oom_killed, rank 1 on here" in decide(job.run, 137, job.environ, 0.0).text
    assert read_json(job.run.failure)["class"] == "oom_killed"
