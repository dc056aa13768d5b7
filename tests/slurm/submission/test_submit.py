"""Submitting: what is accepted, and what is refused."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from slurm.status.submissions import record
from slurm.submission.batch.batch_script import JobPlan
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import Answer, User
from toolkit.config import load_resolved
from toolkit.files import append_json_line, read_json_lines, write_json
from toolkit.run.create_run import create_run
from toolkit.run.fence import is_fenced, raise_fence
from toolkit.run.run_dir import RunDir

RECORDED = Path(__file__).parents[1] / "support" / "recorded"


# -- accepted ------------------------------------------------------------------------------------


def test_submission_prints_run_job_folder_and_how_to_follow_it(user: User, fake: FakeSlurm) -> None:
    answer = user.stk("submit", user.config)
    run = user.run()
    assert answer.code == 0
    assert answer.err == ""
    for part in (run.run_id, "job     101", str(run.path), f"stk logs -f {run.run_id}"):
        assert part in answer.out


def test_a_submission_in_json_has_the_agreed_keys(user: User, fake: FakeSlurm) -> None:
    answer = user.stk("submit", user.config, "--json")
    run = user.run()
    assert json.loads(answer.out) == {
        "run_id": run.run_id,
        "run_dir": str(run.path),
        "job_id": "101",
        "cluster": "slurm",
        "state": "pending",
    }


def test_the_folder_holds_what_was_asked_for_and_the_code(user: User, fake: FakeSlurm) -> None:
    overrides = ["resources.nodes=2", "resources.comment=hello"]
    user.stk("submit", user.config, *overrides)
    run, experiment = user.run(), user.experiment(*overrides)
    assert load_resolved(run.config) == experiment
    assert load_resolved(run.config, run.job).resources == experiment.resources
    assert (run.code / "toolkit" / "training" / "worker.py").is_file()
    assert (run.code / "slurm" / "job" / "task.py").is_file()
    (line,) = read_json_lines(run.submissions)
    assert (line["job_id"], line["cluster"], line["world_size"]) == ("101", "slurm", 2)
    assert not run.intent.exists()


def test_what_plan_shows_is_what_sbatch_gets(user: User, fake: FakeSlurm) -> None:
    overrides = ["resources.nodes=2", "resources.tasks_per_node=2", "resources.environment.A=it's $HOME"]
    planned = json.loads(user.stk("plan", user.config, *overrides, "--json").out)["script"]
    user.stk("submit", user.config, *overrides)
    assert (user.run().submitit / "101_submission.sh").read_bytes() == planned.encode()


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "COMPLETING", "REQUEUE_HOLD", "REQUEUED"])
def test_run_in_any_live_state_is_refused(user: User, fake: FakeSlurm, state: str) -> None:
    user.stk("submit", user.config)
    fake.change("101", state=state)
    for words in (["submit", user.config], ["submit", user.config, "--fresh"], ["run", user.config]):
        said = user.refused(*words)
        assert ", job 101: it cannot be started twice" in said
        assert f"stk cancel {user.run().run_id}" in said
        assert ("scontrol update" in said) == (state in ("PENDING", "REQUEUE_HOLD", "REQUEUED"))
    assert user.job_ids == ["101"]
    assert len(fake.jobs) == 1


def test_run_that_saves_after_stk_cancel_is_refused_with_advice_to_wait(user: User, fake: FakeSlurm) -> None:
    user.stk("submit", user.config)
    user.stk("cancel", user.run().run_id)
    fake.change("101", state="COMPLETING")
    for words in (["submit", user.config], ["resume", user.run().run_id]):
        assert "is being cancelled" in user.refused(*words)
    append_json_line(user.run().attempts, {"attempt": 1, "time_start": time.time()})
    # The run trains again, as in a terminal.
    assert "is being cancelled" not in user.refused("submit", user.config)
    fake.change("101", state="CANCELLED")
    assert user.stk("resume", user.run().run_id).code == 0


def test_refusal_of_a_live_run_names_code_that_was_edited_since(user: User, fake: FakeSlurm) -> None:
    user.stk("submit", user.config)
    assert "slurm-toolkit itself" not in user.refused("submit", user.config)
    (user.run().code / "toolkit" / "marker.py").touch()
    for words in (["submit", user.config], ["submit", user.config, "--fresh"], ["run", user.config]):
        assert "slurm-toolkit itself" in user.refused(*words)


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"])
def test_an_ended_run_is_submitted_again_under_a_new_name(user: User, fake: FakeSlurm, state: str) -> None:
    user.stk("submit", user.config)
    fake.change("101", state=state, requeue="0")
    assert user.stk("submit", user.config).code == 0
    assert user.job_ids == ["101", "102"]
    assert [job["name"].rpartition(".")[2] for job in fake.jobs] == ["0", "1"]


def test_a_finished_run_says_so_and_is_left_alone(user: User, run: RunDir, fake: FakeSlurm) -> None:
    write_json(run.result, {"step": 4, "epoch": 1, "metrics": {}})
    assert "has finished already" in user.told("submit", user.config)
    fake.answers("--all --oneliner show partition", (RECORDED / "partitions.txt").read_text())
    answer = user.stk("submit", user.config, "resources.partition=since-removed", "--json")
    assert json.loads(answer.out)["state"] == "finished"
    assert fake.jobs == []


def test_fresh_sets_the_old_run_aside(user: User, run: RunDir, fake: FakeSlurm) -> None:
    write_json(run.result, {"step": 4, "epoch": 1, "metrics": {}})
    assert user.stk("submit", user.config, "--fresh").code == 0
    assert not run.result.exists()
    assert user.job_ids == ["101"]
    (old,) = (user.experiments / "old").iterdir()
    assert old.name.startswith(run.run_id)
    assert (old / "result.json").exists()


def test_fresh_keeps_earlier_attempts_from_writing_into_the_new_folder(user: User, fake: FakeSlurm) -> None:
    run = create_run(user.experiment(), user.experiments)
    raise_fence(run, "left")
    assert user.stk("submit", user.config, "--fresh").code == 0
    assert is_fenced(run, "left")


def test_resume_takes_the_resources_of_the_last_submission(user: User, fake: FakeSlurm) -> None:
    user.stk("submit", user.config, "resources.nodes=2", "resources.partition=long")
    fake.change("101", state="FAILED")
    assert user.stk("resume", user.run().run_id).code == 0
    script = (user.run().submitit / "102_submission.sh").read_text()
    assert "#SBATCH --nodes=2\n" in script
    assert "#SBATCH --partition=long\n" in script


@pytest.mark.parametrize("has_saved", [True, False])
def test_resume_keeps_the_code_of_a_run_that_has_saved(user: User, fake: FakeSlurm, has_saved: bool) -> None:
    user.stk("submit", user.config)
    marker = user.run().code / "toolkit" / "marker.py"
    marker.touch()
    if has_saved:
        user.run().checkpoint(1).mkdir(parents=True)
    fake.change("101", state="FAILED")
    user.stk("resume", user.run().run_id)
    assert marker.exists() == has_saved


def test_a_folder_under_another_runs_name_is_not_resumed(user: User, run: RunDir, fake: FakeSlurm) -> None:
    moved = run.path.rename(user.root / "elsewhere")
    assert run.run_id in user.refused("resume", moved)
    assert fake.jobs == []


# -- refused -------------------------------------------------------------------------------------

REFUSAL = "sbatch: error: Batch job submission failed: Invalid account or account/partition combination"


def test_refusal_shows_slurms_words_and_leaves_nothing_behind(user: User, fake: FakeSlurm) -> None:
    fake.submits("refuse", REFUSAL)
    answer = user.stk("submit", user.config)
    assert answer.code == 3
    assert answer.out == ""
    assert answer.err.startswith("error: Slurm refused")
    assert REFUSAL in answer.err
    assert list(user.experiments.iterdir()) == []


def test_a_refusal_leaves_an_existing_run_as_it_was(user: User, fake: FakeSlurm) -> None:
    user.stk("submit", user.config)
    fake.change("101", state="FAILED")
    before, asked_for = user.listing, user.run().job.read_text()
    fake.submits("refuse", REFUSAL)
    assert user.stk("submit", user.config, "resources.nodes=8").code == 3
    assert user.listing == before
    assert user.run().job.read_text() == asked_for
    fake.submits("commit")
    assert user.stk("submit", user.config).code == 0


@pytest.mark.parametrize("disk", ["tmp_path", "nfs"])
def test_a_refusal_of_a_fresh_start_brings_the_old_run_back(
    user: User, fake: FakeSlurm, request: pytest.FixtureRequest, disk: str
) -> None:
    request.getfixturevalue(disk)
    run = create_run(user.experiment(), user.experiments)
    write_json(run.result, {"step": 4, "epoch": 1, "metrics": {}})
    fake.submits("refuse", REFUSAL)
    assert REFUSAL in user.refused("submit", user.config, "--fresh", code=3)
    assert run.result.exists()
    assert list((user.experiments / "old").iterdir()) == []


def test_unknown_partition_is_refused_before_anything_is_written(user: User, fake: FakeSlurm) -> None:
    fake.answers("--all --oneliner show partition", (RECORDED / "partitions.txt").read_text())
    said = user.refused("submit", user.config, "resources.partition=nowhere", code=3)
    assert "nothing was submitted" in said
    assert "partition 'nowhere' does not exist" in said
    assert not user.experiments.exists()
    assert fake.calls("sbatch") == []


def test_folder_name_and_option_that_no_script_can_hold_are_refused(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(user.root / "100%"))
    said = user.refused("submit", user.config)
    assert "holds '%': Slurm expands it as a pattern" in said
    assert "STK_EXPERIMENT_DIR" in said
    assert not (user.root / "100%").exists()
    answer = user.stk("submit", user.config, "resources.sbatch.array=1-3")
    assert answer.code == 2
    assert fake.jobs == []


def test_folder_with_a_colon_is_refused_without_slurm(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python would split its name in PYTHONPATH, and import the code of today."""
    parent = user.root / "12:00"
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(parent))
    run = create_run(user.experiment(), parent)
    write_json(run.result, {"step": 4, "epoch": 1, "metrics": {}})
    here = ["--cluster", "local"]
    for command, *words in (
        ["submit", "seed=2", *here], ["submit", "--fresh", *here], ["run", "seed=2"], ["run", "--fresh"],
        ["sweep", "seed=2,3", *here],
    ):  # fmt: skip
        assert "which separates folders in PYTHONPATH" in user.refused(command, user.config, *words)
        assert run.result.exists()
        assert [each.name for each in parent.iterdir() if each.name != "old"] == [run.run_id]


def test_a_plan_of_the_next_submission_has_the_next_name(user: User, run: RunDir, fake: FakeSlurm) -> None:
    record(run, cluster="slurm", job_id="1", name="x")
    script = json.loads(user.stk("plan", user.config, "--json").out)["script"]
    experiment = user.experiment()
    assert script == str(JobPlan(experiment=experiment, run=run, number=1))
    assert f"#SBATCH --job-name={run.run_id}.1\n" in script


# -- time enough to save?


def measured(user: User, fake: FakeSlurm, save_s: float) -> Answer:
    """Resume a run of which an earlier attempt measured how long a save takes, where KillWait is 30 s."""
    fake.answers(
        "--all --oneliner show partition",
        "PartitionName=main Default=YES State=UP TotalNodes=9 PreemptMode=REQUEUE GraceTime=0\n",
    )
    fake.answers("show config", "PreemptType = preempt/partition_prio\nKillWait = 30 sec\n")
    run = create_run(user.experiment(), user.experiments)
    line = {"attempt": 1, "time_start": 1.0, "time_end": 2.0, "last_step": 3, "why": "preempted"}
    append_json_line(run.attempts, {**line, "step_s": 0.5, "save_s": save_s})
    return user.stk("resume", run.run_id)


def test_submission_warns_of_a_save_too_long_for_the_cluster(user: User, fake: FakeSlurm) -> None:
    answer = measured(user, fake, save_s=25.0)
    assert answer.code == 0
    assert "warning: a step and a save take 25.5 s here" in answer.err
    assert "GraceTime 0 s, KillWait 30 s" in answer.err


def test_a_short_save_gives_no_warning(user: User, fake: FakeSlurm) -> None:
    assert measured(user, fake, save_s=5.0).err == ""
