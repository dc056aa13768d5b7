"""Runs that follow each other as jobs of Slurm: what sbatch is told, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from filelock import FileLock

from slurm.status.dependency import standing, waits_for, why_not_begun
from tests.slurm.fake_slurm import FakeSlurm
from tests.slurm.house import CONFIG, House
from toolkit.config import load_resolved
from toolkit.files import append_json_line, read_json_lines, write_json
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir

SECOND = CONFIG.replace("name: tiny", "name: second")
THIRD = CONFIG.replace("name: tiny", "name: third")


@pytest.fixture
def files(house: House, fake: FakeSlurm) -> list[str]:
    """Three experiments, in a house with a pretend Slurm."""
    house.write("second.yaml", SECOND)
    house.write("third.yaml", THIRD)
    return ["tiny.yaml", "second.yaml", "third.yaml"]


def only(house: House, name: str) -> RunDir:
    """The one run of that name."""
    (path,) = house.experiments.glob(f"{name}-????????")
    return RunDir(path)


def script(run: RunDir) -> str:
    return (run.submitit / "script.sh").read_text()


def finish(run: RunDir) -> None:
    write_json(run.result, {"state": "finished", "step": 4, "best": {"step": 4}})


def test_the_second_job_waits_for_the_first_and_the_third_for_the_second(
    house: House, fake: FakeSlurm, files: list[str]
) -> None:
    first, second, third = files
    answer = house.stk("submit", first, "--then", second, "seed=3", "--then", third)
    assert (answer.code, answer.err) == (0, "")
    assert [job["dependency"] for job in fake.jobs] == ["", "afterok:101", "afterok:102"]
    assert "kill-on-invalid-dep=yes" in script(only(house, "second"))
    assert load_resolved(only(house, "second").config).seed == 3
    assert f"waits   for {house.run().run_id} to finish" in answer.out


def test_a_plain_submission_depends_on_nothing(house: House, fake: FakeSlurm) -> None:
    house.stk("submit", house.config)
    assert "--dependency" not in script(house.run())
    assert "kill-on-invalid-dep" not in script(house.run())


def test_json_has_what_follows_beside_the_first(house: House, fake: FakeSlurm, files: list[str]) -> None:
    answer = json.loads(house.stk("submit", "tiny.yaml", "--then", "second.yaml", "--json").out)
    assert answer["run_id"] == house.run().run_id
    assert answer["job_id"] == "101"
    (then,) = answer["then"]
    assert then == {
        "run_id": only(house, "second").run_id,
        "run_dir": str(only(house, "second").path),
        "job_id": "102",
        "cluster": "slurm",
        "state": "pending",
    }


def test_keys_behind_the_first_file_are_its_own(house: House, fake: FakeSlurm, files: list[str]) -> None:
    house.stk("submit", "tiny.yaml", "seed=7", "--then", "second.yaml")
    assert load_resolved(only(house, "tiny").config).seed == 7
    assert load_resolved(only(house, "second").config).seed == 0


def test_a_key_that_could_be_of_either_file_is_refused(
    house: House, fake: FakeSlurm, files: list[str]
) -> None:
    answer = house.stk("submit", "tiny.yaml", "--then", "second.yaml", "--json", "seed=7")
    assert answer.code == 2
    assert "seed=7: " in answer.err
    assert fake.jobs == []


def test_what_has_finished_is_not_waited_for(house: House, fake: FakeSlurm, files: list[str]) -> None:
    finish(create_run(house.experiment(), house.experiments))
    answer = house.stk("submit", "tiny.yaml", "--then", "second.yaml")
    assert "has finished already" in answer.out
    (job,) = fake.jobs
    assert (job["name"].startswith("second-"), job["dependency"]) == (True, "")


def test_a_live_run_is_waited_for_as_it_is(house: House, fake: FakeSlurm, files: list[str]) -> None:
    house.stk("submit", "tiny.yaml")
    answer = house.stk("submit", "tiny.yaml", "--then", "second.yaml")
    assert answer.code == 0
    assert "job     101, pending already" in answer.out
    assert [job["dependency"] for job in fake.jobs] == ["", "afterok:101"]


def test_the_last_of_a_chain_is_refused_where_it_is_live(
    house: House, fake: FakeSlurm, files: list[str]
) -> None:
    house.stk("submit", "tiny.yaml", "--then", "second.yaml")
    answer = house.stk("submit", "tiny.yaml", "--then", "second.yaml")
    assert answer.code == 2
    assert f"{only(house, 'second').run_id} is pending, job 102" in answer.err
    assert len(fake.jobs) == 2


def test_after_a_failure_the_same_command_goes_on_with_both(
    house: House, fake: FakeSlurm, files: list[str]
) -> None:
    house.stk("submit", "tiny.yaml", "--then", "second.yaml")
    fake.change("101", state="FAILED", requeue="0")
    fake.change("102", state="CANCELLED")
    assert house.stk("submit", "tiny.yaml", "--then", "second.yaml").code == 0
    assert [job["dependency"] for job in fake.jobs] == ["", "afterok:101", "", "afterok:103"]


@pytest.mark.parametrize("where", ["second.yaml", "data"])
def test_nothing_is_submitted_where_a_later_run_has_a_fault(
    house: House, fake: FakeSlurm, files: list[str], where: str
) -> None:
    wrong = "train.epocs=3" if where == "second.yaml" else "data.path=nowhere.tsv"
    answer = house.stk("submit", "tiny.yaml", "--then", "second.yaml", wrong)
    assert answer.code == 2
    assert "epocs" in answer.err or "nowhere.tsv" in answer.err
    assert fake.jobs == []
    assert house.runs == []


def test_a_run_cannot_follow_itself(house: House, fake: FakeSlurm, files: list[str]) -> None:
    answer = house.stk("submit", "tiny.yaml", "--then", "tiny.yaml")
    assert answer.code == 2
    assert "a second time" in answer.err


def test_a_later_run_may_begin_with_the_weights_of_the_one_before(
    house: House, fake: FakeSlurm, files: list[str]
) -> None:
    begins = "train.start_from_checkpoint=${oc.env:STK_EARLIER_RUN}"
    answer = house.stk("submit", "tiny.yaml", "--then", "second.yaml", begins)
    assert (answer.code, answer.err) == (0, "")
    stored = load_resolved(only(house, "second").config).train.start_from_checkpoint
    assert stored == str(house.run().path)


def test_weights_of_a_run_that_is_in_no_chain_must_be_there(
    house: House, fake: FakeSlurm, files: list[str]
) -> None:
    begins = f"train.start_from_checkpoint={house.experiments / 'other-00000000'}"
    answer = house.stk("submit", "tiny.yaml", "--then", "second.yaml", begins)
    assert answer.code == 2
    assert "train.start_from_checkpoint" in answer.err
    assert fake.jobs == []


def test_dependencies_of_ones_own_hold_as_well(house: House, fake: FakeSlurm, files: list[str]) -> None:
    house.stk("submit", "tiny.yaml", "--then", "second.yaml", "resources.dependency=afterany:7")
    assert fake.jobs[1]["dependency"] == "afterany:7,afterok:101"


def test_one_of_several_dependencies_cannot_be_joined_with_the_chains(
    house: House, fake: FakeSlurm, files: list[str]
) -> None:
    answer = house.stk(
        "submit", "tiny.yaml", "--then", "second.yaml", "resources.dependency=afterok:7?afterok:8"
    )
    assert answer.code == 2
    assert "one of several is enough" in answer.err
    assert fake.jobs == []


def test_what_was_handed_in_is_told_where_the_rest_is_refused(
    house: House, fake: FakeSlurm, files: list[str]
) -> None:
    house.stk("submit", "tiny.yaml")
    fake.submits("refuse", "sbatch: error: QOSMaxSubmitJobPerUserLimit")
    answer = house.stk("submit", "tiny.yaml", "--then", "second.yaml", "--json")
    assert answer.code == 3
    assert json.loads(answer.out)["job_id"] == "101"
    assert json.loads(answer.out)["then"] == []
    assert "QOSMaxSubmitJobPerUserLimit" in answer.err


def test_a_run_of_this_machine_is_nothing_that_a_job_can_wait_for(
    house: House, fake: FakeSlurm, files: list[str]
) -> None:
    run = create_run(house.experiment(), house.experiments)
    with FileLock(run.alive):
        answer = house.stk("submit", "tiny.yaml", "--then", "second.yaml")
    assert answer.code == 2
    assert "no job of Slurm's can wait for it" in answer.err
    assert fake.jobs == []


# -- the evaluation ------------------------------------------------------------------------------


def test_an_evaluation_is_a_job_of_one_task_that_waits(house: House, fake: FakeSlurm) -> None:
    resources = ["nodes=2", "tasks_per_node=2", "gres=gpu:a100:2,disk:9", "partition=short"]
    house.write("other.tsv", "text\tlabel\nfine\tgood\n")
    given = [f"resources.{each}" for each in resources]
    answer = house.stk("submit", house.config, *given, "--evaluate", "other.tsv", "--json")
    assert (answer.code, answer.err) == (0, "")
    run = house.run(*given)
    found = json.loads(answer.out)["evaluation"]
    assert found == {"job_id": "102", "log": str(run.logs / "102.evaluate.log")}
    text = (run.submitit / "102_submission.sh").read_text()
    for line in ("--nodes=1", "--ntasks-per-node=1", "--gres=gpu:a100:1,disk:9", "--partition=short"):
        assert f"#SBATCH {line}\n" in text
    assert "#SBATCH --dependency=afterok:101\n" in text
    assert f"-m slurm evaluate {run.path} --data {house.root / 'other.tsv'}" in text


def test_only_the_last_run_of_a_chain_is_evaluated(house: House, fake: FakeSlurm, files: list[str]) -> None:
    house.stk("submit", "tiny.yaml", "--then", "second.yaml", "--evaluate")
    assert [job["dependency"] for job in fake.jobs] == ["", "afterok:101", "afterok:102"]
    text = (only(house, "second").submitit / "103_submission.sh").read_text()
    assert text.rstrip().endswith(f"evaluate {only(house, 'second').path}")


def test_a_live_run_gets_its_evaluation_all_the_same(house: House, fake: FakeSlurm) -> None:
    house.stk("submit", house.config)
    assert house.stk("submit", house.config, "--evaluate").code == 0
    assert [job["dependency"] for job in fake.jobs] == ["", "afterok:101"]


def test_what_is_to_be_scored_must_be_there(house: House, fake: FakeSlurm) -> None:
    answer = house.stk("submit", house.config, "--evaluate", "nowhere.tsv")
    assert answer.code == 2
    assert "--evaluate nowhere.tsv: it is not there" in answer.err
    assert fake.jobs == []


# -- where the waiting run stands ----------------------------------------------------------------


def test_status_says_what_a_run_waits_for_and_why_it_never_began(
    house: House, fake: FakeSlurm, files: list[str]
) -> None:
    house.stk("submit", "tiny.yaml", "--then", "second.yaml")
    first, second = house.run(), only(house, "second")
    fake.change("102", reason="Dependency")
    (row,) = json.loads(house.stk("status", second.run_id, "--json").out)
    assert (row["state"], row["reason"]) == ("pending", f"waits for {first.run_id} to finish")
    fake.change("101", state="FAILED", requeue="0")
    fake.change("102", state="CANCELLED", reason="DependencyNeverSatisfied")
    (row,) = json.loads(house.stk("status", second.run_id, "--json").out)
    assert row["state"] == "cancelled"
    assert row["reason"] == f"not begun: {first.run_id}, which it waited for, has not finished"


def test_the_submission_names_the_run_that_it_waits_for(
    house: House, fake: FakeSlurm, files: list[str]
) -> None:
    house.stk("submit", "tiny.yaml", "--then", "second.yaml")
    first, second = house.run(), only(house, "second")
    (line,) = read_json_lines(second.submissions)
    assert line["awaits"] == str(first.path)
    assert waits_for(second) == f"waits for {first.run_id} to finish"
    assert why_not_begun(second) == f"not begun: {first.run_id}, which it waited for, has not finished"
    assert standing(second, "pending", "Dependency") == ("pending", waits_for(second))
    assert standing(second, "cancelled", "") == ("cancelled", why_not_begun(second))
    assert standing(first, "failed", "boom") == ("failed", "boom")
    write_json(first.failure, {"class": "exception"})
    assert why_not_begun(second) == f"not begun: {first.run_id}, which it waited for, failed"
    assert (waits_for(first), why_not_begun(first)) == (None, None)
    append_json_line(second.attempts, {"attempt": 1, "time_start": line["time"] + 1})
    assert (waits_for(second), why_not_begun(second)) == (None, None)


def test_a_folder_without_submissions_waits_for_nothing(tmp_path: Path) -> None:
    assert waits_for(RunDir(tmp_path)) is None
