"""Runs that follow each other as jobs of Slurm: what sbatch is told, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from filelock import FileLock

from slurm.status.dependency import waits_for, why_not_begun
from slurm.status.rows import status
from slurm.status.submissions import intend
from slurm.submission import evaluation
from slurm.submission.chain import held
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import CONFIG, Answer, User
from toolkit.config import load_resolved
from toolkit.errors import SlurmUnavailable
from toolkit.files import append_json_line, read_json_lines, write_json
from toolkit.run.run_dir import RunDir


@pytest.fixture
def user(user: User, fake: FakeSlurm) -> User:
    """A user of a pretend Slurm, with three experiments."""
    for name in ("second", "third"):
        user.write(f"{name}.yaml", CONFIG.replace("name: tiny", f"name: {name}"))
    return user


#: Submits the first experiment, and the second one behind it.
BOTH = ("submit", "tiny.yaml", "--then", "second.yaml")


def submit_both(user: User, *words: str) -> Answer:
    return user.stk(*BOTH, *words)


def only(user: User, name: str) -> RunDir:
    """The one run of that name."""
    (path,) = user.experiments.glob(f"{name}-????????")
    return RunDir(path)


def test_the_second_job_waits_for_the_first_and_the_third_for_the_second(user: User, fake: FakeSlurm) -> None:
    answer = submit_both(user, "seed=3", "--then", "third.yaml")
    assert (answer.code, answer.err) == (0, "")
    assert [job["dependency"] for job in fake.jobs] == ["", "afterok:101", "afterok:102"]
    script = (only(user, "second").submitit / "102_submission.sh").read_text()
    assert "kill-on-invalid-dep=yes" in script
    assert load_resolved(only(user, "second").config).seed == 3
    assert f"waits   for {user.run().run_id} to finish" in answer.out


def test_json_lists_following_runs_beside_the_first(user: User, fake: FakeSlurm) -> None:
    answer = json.loads(submit_both(user, "--json").out)
    assert answer["run_id"] == user.run().run_id
    assert answer["job_id"] == "101"
    (then,) = answer["then"]
    assert then == {
        "run_id": only(user, "second").run_id,
        "run_dir": str(only(user, "second").path),
        "job_id": "102",
        "cluster": "slurm",
        "state": "pending",
    }


def test_keys_after_the_first_file_apply_only_to_it(user: User, fake: FakeSlurm) -> None:
    user.stk("submit", "tiny.yaml", "seed=7", "--then", "second.yaml")
    assert load_resolved(only(user, "tiny").config).seed == 7
    assert load_resolved(only(user, "second").config).seed == 0


def test_finished_run_is_not_waited_for(user: User, run: RunDir, fake: FakeSlurm) -> None:
    write_json(run.result, {"state": "finished", "step": 4, "best": {"step": 4}})
    assert "has finished already" in user.told(*BOTH)
    (job,) = fake.jobs
    assert (job["name"].startswith("second-"), job["dependency"]) == (True, "")


def test_live_run_is_waited_for_without_resubmission(user: User, fake: FakeSlurm) -> None:
    user.stk("submit", "tiny.yaml")
    assert "job     101, pending already" in user.told(*BOTH)
    assert [job["dependency"] for job in fake.jobs] == ["", "afterok:101"]


def test_chain_goes_on_behind_a_job_whose_answer_was_lost(user: User, run: RunDir, fake: FakeSlurm) -> None:
    intend(run, f"{run.run_id}.0")
    fake.add("101", name=f"{run.run_id}.0", work_dir=str(run.path))
    user.told(*BOTH)
    assert fake.jobs[-1]["dependency"] == "afterok:101"


def test_chain_whose_last_run_is_live_is_refused(user: User, fake: FakeSlurm) -> None:
    submit_both(user)
    assert f"{only(user, 'second').run_id} is pending, job 102" in user.refused(*BOTH)
    assert len(fake.jobs) == 2


def test_no_run_starts_anew_if_a_later_one_is_live(user: User, run: RunDir, fake: FakeSlurm) -> None:
    write_json(run.result, {"state": "finished", "step": 4, "best": {"step": 4}})
    submit_both(user)
    assert f"{only(user, 'second').run_id} is pending, job 101" in user.refused(*BOTH, "--fresh")
    assert run.result.exists()
    assert len(fake.jobs) == 1


def test_same_command_submits_both_runs_again_after_a_failure(user: User, fake: FakeSlurm) -> None:
    submit_both(user)
    fake.change("101", state="FAILED", requeue="0")
    fake.change("102", state="CANCELLED")
    assert submit_both(user).code == 0
    assert [job["dependency"] for job in fake.jobs] == ["", "afterok:101", "", "afterok:103"]


@pytest.mark.parametrize(
    "words, told",
    [
        (["--then", "second.yaml", "train.epocs=3"], "epocs"),
        (["--then", "second.yaml", "data.path=nowhere.tsv"], "nowhere.tsv"),
        # Only a run of the chain may be one that does not exist yet.
        (["--then", "second.yaml", "train.start_from_checkpoint=experiments/other-0"], "other-0"),
        (["--then", "second.yaml", "resources.dependency=afterok:7?afterok:8"], "one of several is enough"),
        # The key could be of either file.
        (["--then", "second.yaml", "--json", "seed=7"], "seed=7: "),
        (["--then", "tiny.yaml"], "a second time"),
        (["--evaluate", "nowhere.tsv"], "--evaluate nowhere.tsv: it does not exist"),
        (["--evaluate", "."], "a run of the task toy_texts cannot be scored on a folder"),
    ],
)
def test_nothing_is_submitted_if_any_part_of_a_chain_has_an_error(
    user: User, fake: FakeSlurm, words: list[str], told: str
) -> None:
    assert told in user.refused("submit", "tiny.yaml", *words)
    assert fake.jobs == []
    assert user.runs == []


def test_a_later_run_may_begin_with_the_weights_of_the_one_before(user: User, fake: FakeSlurm) -> None:
    begins = "train.start_from_checkpoint=${oc.env:STK_EARLIER_RUN}"
    answer = submit_both(user, begins)
    assert (answer.code, answer.err) == (0, "")
    stored = load_resolved(only(user, "second").config).train.start_from_checkpoint
    assert stored == str(user.run().path)


def test_dependency_of_the_user_is_kept_in_a_chain(user: User, fake: FakeSlurm) -> None:
    submit_both(user, "resources.dependency=afterany:7")
    assert fake.jobs[1]["dependency"] == "afterany:7,afterok:101"


def test_submitted_runs_are_reported_if_the_rest_is_refused(user: User, fake: FakeSlurm) -> None:
    user.stk("submit", "tiny.yaml")
    fake.submits("refuse", "sbatch: error: QOSMaxSubmitJobPerUserLimit")
    answer = submit_both(user, "--json")
    assert answer.code == 3
    assert json.loads(answer.out)["job_id"] == "101"
    assert json.loads(answer.out)["then"] == []
    assert "QOSMaxSubmitJobPerUserLimit" in answer.err


def test_chain_behind_a_run_that_slurm_cannot_be_asked_about_is_no_error_of_the_user(
    user: User, fake: FakeSlurm
) -> None:
    submit_both(user)
    fake.refuses("squeue", "squeue: error: Unable to contact slurm controller (connect failure)")
    first, second = status([only(user, "tiny"), only(user, "second")])
    assert (first.may_live, second.may_live) == (True, True)
    user.refused("cancel", second.run_id, code=3)
    with pytest.raises(SlurmUnavailable), held(only(user, "tiny"), "slurm"):
        pass


def test_job_cannot_wait_for_a_local_run(user: User, fake: FakeSlurm) -> None:
    user.stk("submit", "tiny.yaml")
    fake.change("101", state="FAILED", requeue="0")
    with FileLock(user.run().alive):
        answer = submit_both(user, "--json")
    assert answer.code == 2
    assert "no Slurm job can wait for it" in answer.err
    # The run goes on without its ended job.
    assert json.loads(answer.out)["job_id"] is None
    assert len(fake.jobs) == 1


# -- the evaluation ------------------------------------------------------------------------------


def test_an_evaluation_is_a_job_of_one_task_that_waits(user: User, fake: FakeSlurm) -> None:
    resources = ["nodes=2", "tasks_per_node=2", "gres=gpu:a100:2,disk:9", "partition=short", "sbatch.gpus=4"]
    user.write("other.tsv", "text\tlabel\nfine\tgood\n")
    given = [f"resources.{each}" for each in resources]
    answer = user.stk("submit", user.config, *given, "--evaluate", "other.tsv", "--json")
    assert (answer.code, answer.err) == (0, "")
    run = user.run(*given)
    found = json.loads(answer.out)["evaluation"]
    assert found == {"job_id": "102", "log": str(run.logs / "102.evaluate.log")}
    text = (run.submitit / "102_submission.sh").read_text()
    for line in ("--nodes=1", "--ntasks-per-node=1", "--gres=gpu:a100:1,disk:9", "--gpus=1"):
        assert f"#SBATCH {line}\n" in text
    assert "#SBATCH --dependency=afterok:101\n" in text
    assert f"-m slurm evaluate {run.path} --data {user.root / 'other.tsv'}" in text


def test_only_the_last_run_of_a_chain_is_evaluated(user: User, fake: FakeSlurm) -> None:
    submit_both(user, "--evaluate")
    assert [job["dependency"] for job in fake.jobs] == ["", "afterok:101", "afterok:102"]
    text = (only(user, "second").submitit / "103_submission.sh").read_text()
    assert text.rstrip().endswith(f"evaluate {only(user, 'second').path}")


def test_evaluation_of_a_live_run_is_submitted(user: User, fake: FakeSlurm) -> None:
    user.stk("submit", user.config)
    assert user.stk("submit", user.config, "--evaluate").code == 0
    assert [job["dependency"] for job in fake.jobs] == ["", "afterok:101"]


def test_an_evaluation_that_waits_or_runs_is_not_submitted_again(user: User, fake: FakeSlurm) -> None:
    for _ in range(2):
        told = user.told("submit", user.config, "--evaluate")
        assert "scores  job 102" in told
    user.stk("submit", user.config, "--evaluate", "reviews.tsv")
    assert [job["job_id"] for job in fake.jobs] == ["101", "102", "103"]
    fake.change("102", state="COMPLETED")
    assert "scores  job 104" in user.told("submit", user.config, "--evaluate")


def test_an_evaluation_behind_a_failed_job_is_submitted_again(user: User, fake: FakeSlurm) -> None:
    """Slurm may need a minute to cancel the first one, which never begins."""
    user.stk("submit", user.config, "--evaluate")
    fake.change("101", state="FAILED", requeue="0")
    user.told("submit", user.config, "--evaluate")
    assert [job["dependency"] for job in fake.jobs] == ["", "afterok:101", "", "afterok:103"]


def test_an_evaluation_with_a_lost_id_is_found_by_its_name(user: User, fake: FakeSlurm) -> None:
    """Also if another evaluation of the run is pending."""
    user.stk("submit", user.config, "--evaluate", "reviews.tsv")
    fake.submits("silent")
    answer = user.stk("submit", user.config, "--evaluate", "--json")
    assert (answer.code, json.loads(answer.out)["evaluation"]["job_id"]) == (0, "103")
    assert [job["job_id"] for job in fake.jobs] == ["101", "102", "103"]


def test_an_evaluation_that_may_exist_is_named(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.stk("submit", user.config)
    fake.submits("silent")
    monkeypatch.setattr(evaluation, "find_job", lambda *_, **__: None)
    said = user.refused("submit", user.config, "--evaluate", code=3)
    assert f"see squeue for {user.run().run_id}.evaluate.0" in said


# -- where the waiting run stands ----------------------------------------------------------------


def test_status_says_what_a_run_waits_for_and_why_it_never_began(user: User, fake: FakeSlurm) -> None:
    submit_both(user)
    first, second = user.run(), only(user, "second")
    fake.change("102", reason="Dependency")
    (row,) = json.loads(user.stk("status", second.run_id, "--json").out)
    assert (row["state"], row["reason"]) == ("pending", f"waits for {first.run_id} to finish")
    fake.change("101", state="FAILED", requeue="0")
    fake.change("102", state="CANCELLED", reason="DependencyNeverSatisfied")
    (row,) = json.loads(user.stk("status", second.run_id, "--json").out)
    assert row["state"] == "cancelled"
    assert row["reason"] == f"not begun: {first.run_id}, which it waited for, has not finished"


def test_the_submission_names_the_run_that_it_waits_for(user: User, fake: FakeSlurm) -> None:
    submit_both(user)
    first, second = user.run(), only(user, "second")
    (line,) = read_json_lines(second.submissions)
    assert line["awaits"] == str(first.path)
    write_json(first.failure, {"class": "exception"})
    assert why_not_begun(second) == f"not begun: {first.run_id}, which it waited for, failed"
    assert (waits_for(first), why_not_begun(first)) == (None, None)
    append_json_line(second.attempts, {"attempt": 1, "time_start": line["time"] + 1})
    assert (waits_for(second), why_not_begun(second)) == (None, None)


def test_a_folder_without_submissions_waits_for_nothing(tmp_path: Path) -> None:
    assert waits_for(RunDir(tmp_path)) is None
