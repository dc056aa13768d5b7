"""stk sweep: every combination of values as one job array."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slurm.status.submissions import submissions
from slurm.submission.batch.batch_script import JobPlan
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import CONFIG, User
from tests.slurm.sweeps.asking import ask
from tests.support.mounts import read_only
from toolkit.config import load_resolved
from toolkit.files import read_json, read_json_lines
from toolkit.run.run_dir import RunDir, find_runs

SEEDS = "seed=1,2,3"


def run_of(line: dict[str, Any]) -> RunDir:
    return RunDir(Path(line["run_dir"]))


def array_script(user: User) -> str:
    (path,) = (user.experiments / "sweeps").glob("*/*/script.sh")
    return path.read_text()


# -- accepted ------------------------------------------------------------------------------------


def test_all_runs_are_submitted_with_one_call_as_one_array(user: User, fake: FakeSlurm) -> None:
    answer = ask(user, user.config, SEEDS, "optimizer.lr=0.1,0.01")
    assert len(fake.calls("sbatch")) == 1
    assert (answer["job_id"], answer["cluster"]) == ("101", "slurm")
    assert [(line["job_id"], line["state"]) for line in answer["runs"]] == [
        (f"101_{task}", "pending") for task in range(6)
    ]
    assert answer["runs"][1]["values"] == {"seed": "1", "optimizer.lr": "0.01"}
    assert answer["runs"][1]["run_id"] == user.run("seed=1", "optimizer.lr=0.01").run_id
    assert "#SBATCH --array=0-5\n" in array_script(user)


def test_tasks_of_a_linked_folder_of_sweeps_find_their_runs_with_their_code(
    user: User, fake: FakeSlurm, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    user.experiments.mkdir(exist_ok=True)
    (user.experiments / "sweeps").symlink_to(elsewhere)
    runs = [run_of(line) for line in ask(user, user.config, SEEDS)["runs"]]
    assert all(run.code.is_dir() for run in runs)
    (script,) = elsewhere.glob("*/*/script.sh")
    assert all((script.parent / str(task)).samefile(run.path) for task, run in enumerate(runs))


def test_each_run_is_the_one_that_a_single_submission_would_make(user: User, fake: FakeSlurm) -> None:
    for line, seed in zip(ask(user, user.config, SEEDS)["runs"], (1, 2, 3), strict=True):
        run, experiment = run_of(line), user.experiment(f"seed={seed}")
        assert run.path == user.run(f"seed={seed}").path
        assert load_resolved(run.config) == experiment
        single = JobPlan(experiment=experiment, run=run)
        assert (run.submitit / "array.sh").read_text() == str(single)
        (written,) = read_json_lines(run.submissions)
        assert (written["job_id"], written["world_size"]) == (line["job_id"], 1)
        assert not run.intent.exists()


def test_the_array_finds_each_run_by_the_number_of_its_task(user: User, fake: FakeSlurm) -> None:
    answer = ask(user, user.config, SEEDS)
    (script,) = (user.experiments / "sweeps").glob("*/*/script.sh")
    folder = script.parent
    assert fake.jobs[0]["work_dir"] == str(folder)
    for task, line in enumerate(answer["runs"]):
        assert (folder / str(task)).resolve() == run_of(line).path
    assert len(list(find_runs(user.experiments))) == 3


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["--max-parallel", "2"], "0-2%2"),
        (["resources.max_parallel=1"], "0-2%1"),
        (["resources.max_parallel=1", "--max-parallel", "2"], "0-2%2"),
    ],
)
def test_no_more_tasks_run_at_the_same_time_than_asked_for(
    user: User, fake: FakeSlurm, arguments: list[str], expected: str
) -> None:
    ask(user, user.config, SEEDS, *arguments)
    assert f"#SBATCH --array={expected}\n" in array_script(user)


def test_text_output_lists_every_run_and_the_array(user: User, fake: FakeSlurm) -> None:
    answer = user.stk("sweep", user.config, "seed=1,2", "optimizer.lr=0.1")
    for part in (user.run("seed=2", "optimizer.lr=0.1").run_id, "new", "job     101, an array; runs: 2"):
        assert part in answer.out
    assert answer.out.splitlines()[0].split() == ["seed", "run"]


# -- left out ------------------------------------------------------------------------------------


def test_live_and_finished_runs_are_left_out_with_the_reason(user: User, fake: FakeSlurm) -> None:
    user.stk("submit", user.config, "seed=1")
    (done,) = [run_of(line) for line in ask(user, user.config, "seed=2")["runs"]]
    done.result.write_text('{"step": 4}')
    answer = ask(user, user.config, SEEDS)
    assert [line["skipped"] for line in answer["runs"]] == ["is pending, job 101", "has finished", None]
    assert answer["runs"][2]["job_id"] == "103_0"
    told = user.stk("sweep", user.config, SEEDS).out
    assert "left out: has finished" in told
    assert "nothing to do" in told


def test_a_sweep_without_values_is_refused_with_the_ways_to_give_them(user: User) -> None:
    answer = user.stk("sweep", user.config)
    assert (answer.code, answer.out) == (2, "")
    assert all(way in answer.err for way in ("optimizer.lr=1e-3,1e-4", "`sweep`", "--seeds", "stk submit"))
    assert not user.experiments.exists()


def test_a_sweep_in_which_no_key_has_several_values_says_that_it_is_one_run(
    user: User, fake: FakeSlurm
) -> None:
    """A script may give only one value."""
    answer = user.stk("sweep", user.config, "optimizer.lr=0.1", "--json")
    assert (answer.code, len(json.loads(answer.out)["runs"])) == (0, 1)
    assert "one run" in answer.err
    assert (
        "one run" not in user.stk("sweep", user.config, "optimizer.lr=0.1", "--seeds", "1", "--dry-run").err
    )
    assert "1 run: " in user.stk("sweep", user.config, "optimizer.lr=0.1", "--dry-run").out
    assert "1 run, " in user.stk("sweep", "status", "tiny").out


@pytest.mark.parametrize(
    "section, words, is_told",
    [
        ("parameters: {optimizer.lr: [0.1]}", [], True),
        ("runs: [{optimizer.lr: 0.1}]", [], True),
        ("", ["optimizer.lr=0.1,0.1"], True),
        ("", ["data.prepared_dir=prepared,elsewhere"], True),
        ("", ["optimizer.lr=0.1,0.2"], False),
        ("", ["optimizer.lr=0.1,0.2", "--random", "1"], False),
    ],
)
def test_a_sweep_says_that_it_is_one_run_however_its_values_are_given(
    user: User, fake: FakeSlurm, section: str, words: list[str], is_told: bool
) -> None:
    config = user.write("one.yaml", CONFIG + (f"sweep: {{{section}}}\n" if section else ""))
    answer = user.stk("sweep", config, *words, "--dry-run")
    assert (answer.code, "one run" in answer.err) == (0, is_told)


def test_two_combinations_that_are_one_run_are_submitted_once(user: User, fake: FakeSlurm) -> None:
    answer = user.stk("sweep", user.config, "data.prepared_dir=prepared,elsewhere", "seed=1,2")
    assert "the same run as above" in answer.out
    assert len(fake.jobs) == 2


def test_ended_run_is_resumed_as_a_task(user: User, fake: FakeSlurm) -> None:
    user.stk("submit", user.config, "seed=1")
    fake.change("101", state="CANCELLED")
    answer = ask(user, user.config, SEEDS)
    run = run_of(answer["runs"][0])
    assert [each.job_id for each in submissions(run)] == ["101", "102_0"]
    assert f"--job-name={run.run_id}.1\n" in (run.submitit / "array.sh").read_text()


def test_a_dry_run_shows_the_runs_and_leaves_nothing(user: User, fake: FakeSlurm) -> None:
    before = user.listing
    answer = ask(user, user.config, SEEDS, "--dry-run")
    assert [line["state"] for line in answer["runs"]] == [None] * 3
    assert (user.listing, fake.jobs) == (before, [])
    told = user.stk("sweep", user.config, SEEDS, "--dry-run").out
    assert told.count("  new\n") == 3
    assert "job" not in told


def test_a_dry_run_refuses_uneven_hosts_as_the_submission_does(user: User, fake: FakeSlurm) -> None:
    uneven = "resources.groups=[{nodes: 1, gpus: 2}, {nodes: 1, gpus: 1}]"
    assert "cannot be an array" in user.refused("sweep", user.config, SEEDS, uneven, "--dry-run")
    assert user.stk("sweep", user.config, SEEDS, uneven, "--dry-run", "--cluster", "local").code == 0


# -- refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["seed=1,2", "train.epochs=1,many"], "in the run with seed=1 train.epochs=many and 1 more"),
        (["data.path=reviews.tsv,none.tsv"], "none.tsv"),
    ],
)
def test_a_fault_in_one_combination_names_it_and_nothing_is_submitted(
    user: User, fake: FakeSlurm, arguments: list[str], told: str
) -> None:
    before = user.listing
    assert told in user.refused("sweep", user.config, *arguments)
    assert (user.listing, fake.jobs) == (before, [])


def test_slurms_words_are_shown_and_no_run_is_left_behind(user: User, fake: FakeSlurm) -> None:
    user.stk("submit", user.config, "seed=1")
    fake.change("101", state="CANCELLED")
    fake.submits("refuse", "sbatch: error: Invalid account")
    assert "Invalid account" in user.refused("sweep", user.config, SEEDS, code=3)
    assert user.runs == [user.run("seed=1").run_id]
    assert not user.run("seed=1").intent.exists()
    assert list((user.experiments / "sweeps").iterdir()) == []


def test_sweep_is_refused_without_job_arrays(user: User, fake: FakeSlurm) -> None:
    fake.answers("show config", "MaxArraySize            = 0\n")
    answer = user.stk("sweep", user.config, SEEDS)
    assert (answer.code, user.runs) == (3, [])
    assert "no job arrays" in answer.err


# -- trouble -------------------------------------------------------------------------------------


def test_an_array_whose_answer_was_lost_is_found_by_its_name(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Runs of an array that was found are not marked: a full disk would cost the array its folder.
    monkeypatch.delattr("slurm.sweeps.submit_array.mark_lost")
    fake.submits("silent")
    answer = ask(user, user.config, SEEDS)
    assert [line["job_id"] for line in answer["runs"]] == ["101_0", "101_1", "101_2"]


def test_an_array_that_a_busy_controller_may_still_take_is_not_submitted_again(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.fails_once("sbatch", "sbatch: error: Socket timed out on send/recv operation")
    for words in (
        ("sweep", user.config, SEEDS),
        ("sweep", user.config, SEEDS),
        ("submit", user.config, "seed=1"),
    ):
        answer = user.stk(*words)
        assert (answer.code, len(fake.jobs)) == (3, 0), answer.err
    monkeypatch.setattr("slurm.status.submissions._LATE_S", 0.0)
    assert len(ask(user, user.config, SEEDS)["runs"]) == len(fake.jobs) == 3


def test_submitter_that_dies_in_sbatch_loses_no_run_and_submits_none_twice(
    user: User, fake: FakeSlurm
) -> None:
    fake.submits("die")
    user.call("sweep", user.config, SEEDS)
    intents = [read_json(run.intent) for run in find_runs(user.experiments)]
    assert len([intent for intent in intents if intent is not None]) == 3
    fake.submits("commit")
    answer = ask(user, user.config, SEEDS)
    assert [line["job_id"] for line in answer["runs"]] == ["101_0", "101_1", "101_2"]
    assert len(fake.jobs) == 3
    found = [each for run in find_runs(user.experiments) for each in submissions(run)]
    assert sorted(each.job_id for each in found) == ["101_0", "101_1", "101_2"]
    assert all(each.array == each.name for each in found)


# -- afterwards ----------------------------------------------------------------------------------


def test_one_task_is_cancelled_requeued_and_shown_by_its_own_id(user: User, fake: FakeSlurm) -> None:
    run = run_of(ask(user, user.config, SEEDS)["runs"][1])
    fake.change("101_1", state="RUNNING")
    fake.has_steps("101_1.0")
    states = json.loads(user.stk("status", "--json").out)
    assert {row["job_id"]: row["state"] for row in states} == {
        "101_0": "pending", "101_1": "running", "101_2": "pending",
    }  # fmt: skip
    user.stk("requeue", run.run_id)
    user.stk("cancel", run.run_id)
    assert fake.calls("scancel") == [["--signal=USR2", "--", "101_1"], ["--", "101_1"]]


def test_a_task_that_has_ended_is_resumed_as_a_job_of_its_own(user: User, fake: FakeSlurm) -> None:
    run = run_of(ask(user, user.config, SEEDS)["runs"][1])
    fake.change("101_1", state="CANCELLED")
    assert user.stk("resume", run.run_id).code == 0
    assert [each.job_id for each in submissions(run)] == ["101_1", "104"]


# -- without Slurm -------------------------------------------------------------------------------


@pytest.mark.slow
def test_sweep_without_slurm_trains_the_runs_locally(user: User) -> None:
    answer = user.call("sweep", user.config, "seed=1,2", "--cluster", "local", "--json")
    assert answer.code == 0, answer.err
    found = json.loads(answer.out)
    assert [line["state"] for line in found["runs"]] == ["finished"] * 2
    assert all(run_of(line).result.exists() for line in found["runs"])
    again = user.call("sweep", user.config, "seed=1,2", "--cluster", "local")
    assert "nothing to do" in again.out


@pytest.mark.slow
def test_failed_local_run_does_not_stop_the_next_one(user: User) -> None:
    bad = "text\tlabel\n" + "a film\tgood\n" * 3000 + "a film\n"
    user.write("bad.tsv", bad)
    answer = user.call("sweep", user.config, "data.path=bad.tsv,reviews.tsv", "--cluster", "local")
    assert answer.code == 2
    assert "bad.tsv:3002: 1 fields, expected 2" in answer.err
    assert user.runs == [user.run("data.path=reviews.tsv").run_id]
    assert user.run("data.path=reviews.tsv").result.exists()


def test_a_sweep_that_cannot_be_written_is_refused_with_a_way_out(user: User, fake: FakeSlurm) -> None:
    user.experiments.mkdir()
    with read_only(user.experiments):
        refused = user.refused("sweep", user.config, SEEDS)
    assert f"cannot write {user.experiments / 'sweeps'}" in refused
    assert "STK_EXPERIMENT_DIR chooses another place" in refused
    assert not fake.calls("sbatch")
