"""stk submit: from an experiment file to a job of two hosts, and to its result."""

from __future__ import annotations

import ipaddress
import shutil
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cluster.product.user import User, Users, assert_same_training, ranks, slowly, weights
from tests.cluster.waiting import wait_until
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir
from toolkit.workloads.text_classification.files import ClassificationFiles

RESOURCES = ("resources.nodes=2", "resources.tasks_per_node=2", "resources.gres=gpu:2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A run from its plan to its end, with what its user asked meanwhile."""

    user: User
    run: RunDir
    job_id: str
    plan: dict[str, Any]
    live_status: dict[str, Any]

    @property
    def environments(self) -> list[dict[str, str]]:
        return self.user.environments_of_ranks()


@pytest.fixture(scope="module")
def story(users: Users) -> Story:
    user = users.user("submit")
    observed = {"PYTHONPATH": str(user.install_probe()), **slowly(0.05)}
    plan = user.stk_json("plan", "long.yaml", *RESOURCES)
    run, job_id = user.submit("long", *RESOURCES, env=observed)
    user.wait_for_step(run)
    live_status = user.status(run)
    user.wait_until_finished(run, job_id)
    return Story(user=user, run=run, job_id=job_id, plan=plan, live_status=live_status)


def test_the_job_ends_completed_in_accounting(story: Story) -> None:
    options = (
        "--noheader",
        "--parsable2",
        "--format=JobID,State,AllocNodes,NTasks",
        f"--jobs={story.job_id}",
    )

    def records() -> list[list[str]]:
        return [line.split("|") for line in story.user.run("sacct", *options).stdout.splitlines()]

    wait_until(lambda: [record[1] for record in records()] == ["COMPLETED"] * 3, lambda: str(records()))
    assert [record[0] for record in records()] == [story.job_id, f"{story.job_id}.batch", f"{story.job_id}.0"]
    assert records()[2][2:] == ["2", "4"]


def test_the_job_ran_the_script_that_the_plan_showed(story: Story) -> None:
    script = story.user.run("scontrol", "write", "batch_script", story.job_id, "-").stdout
    assert script.rstrip("\n") == story.plan["script"].rstrip("\n")
    assert story.plan["world_size"] == 4
    assert [*story.run.submitit.glob("*.sh")] != []
    for file in story.run.submitit.glob("*.sh"):
        assert file.read_text() == story.plan["script"]


def test_each_rank_knows_its_place(story: Story) -> None:
    found = ranks(story.run)
    assert [rank["rank"] for rank in found] == [0, 1, 2, 3]
    assert [rank["local_rank"] for rank in found] == [0, 1, 0, 1]
    assert [rank["world_size"] for rank in found] == [4] * 4
    hosts = [rank["host"] for rank in found]
    assert hosts[0] == hosts[1] != hosts[2] == hosts[3]
    assert set(hosts) <= set(story.user.cluster.hosts)
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
    assert [tuple(environment[name] for name in names) for environment in story.environments] == [
        ("0", "0", "4", "2"),
        ("1", "1", "4", "2"),
        ("2", "0", "4", "2"),
        ("3", "1", "4", "2"),
    ]


def test_all_ranks_meet_at_one_address_of_the_cluster(story: Story) -> None:
    found = ranks(story.run)
    assert len({(rank["master_addr"], rank["master_port"]) for rank in found}) == 1
    assert found[0]["master_addr"] == story.user.cluster.addresses[found[0]["host"]]
    assert ipaddress.ip_address(found[0]["master_addr"]).is_private
    seen = {(environment["MASTER_ADDR"], environment["MASTER_PORT"]) for environment in story.environments}
    assert seen == {(found[0]["master_addr"], str(found[0]["master_port"]))}


def test_ranks_keep_the_devices_that_slurm_granted(story: Story) -> None:
    granted = [environment["SLURM_STEP_GPUS"] for environment in story.environments]
    assert [len(devices.split(",")) for devices in granted] == [2] * 4
    assert [environment["CUDA_VISIBLE_DEVICES"] for environment in story.environments] == granted
    assert [rank["cuda_visible_devices"] for rank in ranks(story.run)] == granted


def test_run_folder_holds_all_expected_files(story: Story) -> None:
    run, files = story.run, ClassificationFiles(story.run)
    expected = [
        run.config, run.job, run.submissions, run.attempts, run.events, run.metrics, run.result,
        run.code / "toolkit" / "training" / "worker.py", run.code / "slurm" / "job" / "task.py",
        run.best / "model.safetensors", run.last / "model.safetensors",
        run.report_html, run.report / "report.json", run.report / "metrics.csv",
        files.classes("validation"), files.classes("test"), files.predictions("test"), run.tensorboard,
    ]  # fmt: skip
    assert [str(path) for path in expected if not path.exists()] == []
    assert not run.failure.exists()
    assert not run.intent.exists()
    assert [*run.path.glob("**/*.tmp")] == []


def test_result_equals_that_of_one_local_process(story: Story, long_alone: RunDir) -> None:
    assert_same_training(story.run, long_alone)
    here, there = read_json(long_alone.result), read_json(story.run.result)
    assert (there["metrics"]["test"], there["best"]) == (here["metrics"]["test"], here["best"])


def test_status_counts_the_steps_of_a_running_job(story: Story) -> None:
    status = story.live_status
    assert (status["state"], status["job_id"], status["restarts"]) == ("running", story.job_id, 0)
    assert 0 < status["step"] < status["total_steps"] == read_json(story.run.result)["step"]


def test_each_rank_has_its_log(story: Story) -> None:
    for rank in ranks(story.run):
        log = story.run.logs / f"{story.job_id}.0.0.rank_{rank['rank']:05d}.log"
        assert f"rank {rank['rank']} of 4 on {rank['host']}, process {rank['pid']}" in log.read_text()
        shown = story.user.run("stk", "logs", story.run.run_id, "--rank", str(rank["rank"])).stdout
        assert shown == log.read_text()


# ---- a submitter that dies

_KILLS_ITS_PARENT = """\
#!/bin/bash
{before}
kill -9 $PPID
"""


def _submit_and_die(user: User, *, submits: bool) -> None:
    """Submit with an sbatch that kills whoever called it, before or after it has done its work."""
    before = f'{shutil.which("sbatch")} "$@"' if submits else ""
    deadly = user.stand_before("sbatch", _KILLS_ITS_PARENT.format(before=before))
    # Held, because its job would end before the next command looks for it on a busy machine.
    held = ("quick.yaml", "resources.sbatch.hold=true")
    assert user.run("stk", "submit", *held, check=False, env=deadly).returncode == -9


def test_a_submitter_that_is_killed_leaves_neither_duplicate_nor_orphan(
    user: User, quick_alone: RunDir
) -> None:
    """Killed before sbatch it leaves no job; killed after, one that runs and that the next submit finds."""
    _submit_and_die(user, submits=False)
    _submit_and_die(user, submits=True)
    run = user.only_run()
    assert not run.submissions.exists()
    refusal = user.run("stk", "submit", "quick.yaml", check=False)
    assert refusal.returncode == 2
    job_id = user.status(run)["job_id"]
    assert f"job {job_id}" in refusal.stderr
    user.run("scontrol", "release", job_id)
    user.wait_until_finished(run, job_id)
    assert user.stk_json("submit", "quick.yaml")["state"] == "finished"
    assert weights(run) == weights(quick_alone)
    assert user.job_folders() == [str(run.path)]
