"""stk prepare --cluster slurm: what is asked for, and what the job does about a warning."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from slurm.config.resources import Group, Resources
from slurm.job.preparation import KeptProgress, act_on_warning
from slurm.status.submissions import submissions
from slurm.submission.prepare_job import PreparePlan, as_preparation
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.golden import assert_golden
from tests.slurm.support.plans import PLANS
from tests.slurm.support.pretend_job import PretendJob
from tests.slurm.support.user import CODE, User
from tests.support.pending_signal import end_with_pending_sigterm
from tests.toolkit.support.tiny import tiny
from toolkit.config import load_resolved
from toolkit.config.schema import Experiment
from toolkit.exit_codes import ExitCode
from toolkit.run.run_dir import RunDir

GOLDEN = Path(__file__).parent / "prepare_job.sh"


def plan(experiment: Experiment, folder: Path = Path("/runs/preparations/tiny")) -> PreparePlan:
    return PreparePlan(experiment=experiment, run=RunDir(folder), python="/opt/my venv/bin/python")


def prepared(user: User, *arguments: object) -> Any:
    return json.loads(user.told("prepare", user.config, "--cluster", "slurm", *arguments, "--json"))


# -- the plan ------------------------------------------------------------------------------------


def test_script_equals_the_golden_file(experiment: Experiment) -> None:
    resources, _ = PLANS["every_option"]
    assert_golden(str(plan(as_preparation(replace(experiment, resources=resources)))), GOLDEN)


def test_preparation_is_one_task_without_gpus(experiment: Experiment) -> None:
    uneven = Resources(
        groups=(Group(nodes=2, gpus=2),),
        gres="tmpdisk:5,gpu:a100:2",
        partition="long",
        sbatch={"gpus": 4, "gpus_per_socket": 2, "cpus-per-gpu": 8, "spread-job": True},
    )
    resources = as_preparation(replace(experiment, resources=uneven), cpus=4).resources
    wanted = Resources(cpus_per_task=4, gres="tmpdisk:5", partition="long", sbatch={"spread-job": True})
    assert resources == wanted


def test_list_of_several_hosts_is_dropped_for_a_preparation(experiment: Experiment) -> None:
    for given, kept in (("node[1-2]", None), ("node1", "node1"), (None, None)):
        asked = as_preparation(replace(experiment, resources=Resources(nodelist=given)))
        assert asked.resources.nodelist == kept


@pytest.mark.parametrize(
    "cpus_per_task, cpus, workers, expected",
    [(None, None, None, 1), (8, None, None, 8), (8, 3, None, 3), (8, None, 2, 2)],
)
def test_texts_are_prepared_by_as_many_processes_as_there_are_cpus(
    tmp_path: Path, cpus_per_task: int | None, cpus: int | None, workers: int | None, expected: int
) -> None:
    experiment = tiny(tmp_path, f"data.workers={workers or 'null'}")
    experiment = replace(experiment, resources=Resources(cpus_per_task=cpus_per_task))
    assert as_preparation(experiment, cpus).data.workers == expected


# -- submitting ----------------------------------------------------------------------------------


def test_json_names_job_log_and_folder(user: User, fake: FakeSlurm) -> None:
    answer = prepared(user, "--cpus", "4")
    folder = RunDir(Path(answer["folder"]))
    assert answer == {
        "job_id": "101",
        "cluster": "slurm",
        "state": "pending",
        "log": f"{folder.logs}/101.rank_00000.log",
        "folder": str(user.experiments / "preparations" / user.run().run_id),
    }
    assert load_resolved(folder.config).resources.cpus_per_task == 4
    assert (folder.code / "slurm" / "job" / "preparation.py").is_file()
    assert "#SBATCH --cpus-per-task=4\n" in (folder.submitit / "101_submission.sh").read_text()
    assert user.runs == []


def test_text_output_says_how_to_follow_the_job(user: User, fake: FakeSlurm) -> None:
    told = user.stk("prepare", user.config, "--cluster", "slurm").out
    assert "job     101\nlog     " in told
    assert "stk logs -f " in told


def test_no_second_job_is_submitted_while_one_is_live(user: User, fake: FakeSlurm) -> None:
    prepared(user)
    fake.change("101", state="RUNNING")
    assert (prepared(user)["job_id"], prepared(user)["state"]) == ("101", "running")
    fake.change("101", state="COMPLETED")
    assert prepared(user)["job_id"] == "102"
    folder = RunDir(user.experiments / "preparations" / user.run().run_id)
    assert [each.job_id for each in submissions(folder)] == ["101", "102"]


def test_preparation_is_not_continued_as_a_run(user: User, fake: FakeSlurm) -> None:
    name = f"preparations/{Path(prepared(user)['folder']).name}"
    for command in ("resume", "run"):
        assert "repeat `stk prepare`" in user.refused(command, name)


def test_next_job_has_the_current_settings(user: User, fake: FakeSlurm) -> None:
    prepared(user)
    fake.change("101", state="FAILED")
    folder = RunDir(Path(prepared(user, "data.prepared_dir=elsewhere")["folder"]))
    assert load_resolved(folder.config).data.prepared_dir == str(user.root / "elsewhere")


def test_refused_preparation_leaves_nothing(user: User, fake: FakeSlurm) -> None:
    fake.submits("refuse", "sbatch: error: Invalid account")
    answer = user.stk("prepare", user.config, "--cluster", "slurm")
    assert (answer.code, list((user.experiments / "preparations").iterdir())) == (3, [])
    assert "Invalid account" in answer.err


def test_folder_of_runs_that_cannot_be_made_is_reported(user: User, fake: FakeSlurm) -> None:
    user.experiments.touch()
    answer = user.stk("prepare", user.config, "--cluster", "slurm")
    assert (answer.code, fake.jobs) == (2, [])
    assert "STK_EXPERIMENT_DIR" in answer.err


def test_cpus_option_requires_cluster_slurm(user: User) -> None:
    assert "--cluster slurm" in user.refused("prepare", user.config, "--cpus", "2")


# -- inside the job ------------------------------------------------------------------------------


def run_script(user: User) -> tuple[RunDir, subprocess.CompletedProcess[str]]:
    """What a job of the preparation does: its script, without Slurm."""
    answer = prepared(user)
    folder = RunDir(Path(answer["folder"]))
    done = subprocess.run(
        ["bash", folder.submitit / f"{answer['job_id']}_submission.sh"],
        cwd=folder.path,
        env={"PATH": "/usr/bin:/bin", "SLURM_JOB_ID": answer["job_id"]},
        capture_output=True,
        text=True,
    )
    return folder, done


def test_the_script_prepares_the_data_and_says_so(user: User, fake: FakeSlurm) -> None:
    folder, done = run_script(user)
    assert done.returncode == 0, done.stderr
    assert "with 1 process\nprepared: train " in done.stdout
    assert not json.loads(user.stk("prepare", user.config, "--json").out)["built"]
    (row,) = json.loads(user.stk("status", str(folder.path), "--json").out)
    assert row["state"] == "finished"


def test_bad_data_are_reported_in_the_log(user: User, fake: FakeSlurm) -> None:
    (user.root / "reviews.tsv").write_text("text\tlabel\n" + "a film\tgood\n" * 3000 + "a film\n")
    _, done = run_script(user)
    assert done.returncode == 2
    assert "error: " in done.stdout
    assert "reviews.tsv:3002: 1 fields, expected 2" in done.stdout
    assert done.stderr == ""


def test_request_that_came_before_the_preparation_was_ready_ends_it(user: User, fake: FakeSlurm) -> None:
    folder = prepared(user)["folder"]
    assert end_with_pending_sigterm(["slurm.job.preparation", folder]) == ExitCode.INTERRUPTED


def warned(job: PretendJob, progress: KeptProgress) -> str:
    """What the job does about Slurm's warning."""
    return act_on_warning(Resources().signal_s, progress, job.environ)


def progress(*done: int, job: str = "shards") -> KeptProgress:
    found = KeptProgress("shards")
    for each in done:
        found.preparing(job, each, 100)
    return found


def test_preparation_with_progress_is_requeued_before_the_time_limit(job: PretendJob) -> None:
    job.says(EndTime=_soon())
    assert "is requeued" in warned(job, progress(10, 20))
    assert job.requeues == [["requeue", "101"]]


@pytest.mark.parametrize("done", [[], [10], [10, 10]])
def test_preparation_without_lasting_progress_is_not_requeued(job: PretendJob, done: list[int]) -> None:
    job.says(EndTime=_soon())
    assert "needs a longer resources.time" in warned(job, progress(*done))
    assert "needs a longer resources.time" in warned(job, progress(1, 2, job="read table"))
    assert job.requeues == []


def test_preempted_preparation_is_always_requeued(job: PretendJob) -> None:
    job.is_preempted()
    assert "preempted" in warned(job, progress())
    assert job.requeues == [["requeue", "101"]]


def test_cancelled_preparation_is_not_requeued(job: PretendJob) -> None:
    job.is_cancelled()
    assert warned(job, progress(10, 20)) == "the job was stopped: cancelled"
    assert job.requeues == []


def _soon() -> str:
    return (datetime.now() + timedelta(seconds=30)).isoformat(timespec="seconds")


def test_warning_signal_is_handled_even_if_the_script_ignored_it(job: PretendJob) -> None:
    job.says(EndTime=_soon())
    program = (
        "import os, threading\n"
        "from slurm.job.preparation import KeptProgress, await_warning\n"
        f"await_warning({Resources().signal_s}, KeptProgress(), os.environ)\n"
        "print('ready', flush=True)\n"
        "[each.join() for each in threading.enumerate() if each.daemon]\n"
    )
    process = subprocess.Popen(
        ["bash", "-c", 'trap "" USR2; exec "$@"', "-", sys.executable, "-c", program],
        env={**job.environ, **CODE, "PATH": f"{job.environ['PATH']}:/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGUSR2)
    assert "needs a longer resources.time" in process.stdout.readline()
    assert process.wait() == 0
