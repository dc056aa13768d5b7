"""A sweep that exists is asked for again: changed, split into arrays, limited, refused."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest
from filelock import FileLock

from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import CONFIG, User
from tests.slurm.sweeps.asking import ask, finish, folder, sweep_of
from toolkit.config.schema import Experiment
from toolkit.exit_codes import ExitCode
from toolkit.run.create_run import create_run, fill_run
from toolkit.run.run_dir import RunDir, find_runs
from toolkit.sweeps.folder import read_arrays, read_record

LIMITED = "AccountingStorageEnforce = associations,limits\nMaxArraySize = 1001\n"


# -- asked for again -----------------------------------------------------------------------------


def test_changed_file_shows_the_difference_and_applies_it(user: User, fake: FakeSlurm) -> None:
    config = sweep_of(user, "[0.1, 0.2, 0.3]")
    first = ask(user, config)["runs"]
    finish(first[0], 0.9)
    sweep_of(user, "[0.1, 0.2, 0.4]")
    shown = user.stk("sweep", config, "--dry-run").out
    for told in ("left out: has finished", "left out: is pending, job 101_1", "removed: pending"):
        assert told in shown
    counts = "sweep lrs: 3 runs: 1 new, 2 unchanged (1 finished, 1 pending), 1 removed (1 pending)"
    assert counts in shown
    again = ask(user, config)
    assert [line["change"] for line in again["runs"]] == ["unchanged", "unchanged", "new"]
    assert again["removed"] == [{"run_id": first[2]["run_id"], "state": "pending"}]
    assert again["job_id"] == "104"
    assert fake.calls("scancel") == []
    assert [line["change"] for line in ask(user, config)["runs"]] == ["unchanged"] * 3


def test_a_changed_key_of_all_runs_is_named_as_what_makes_them_new(user: User) -> None:
    config = sweep_of(user, "[0.1, 0.2]")
    before = ask(user, config)["runs"][0]["run_id"]
    config.write_text(config.read_text() + "seed: 7\n")
    told = user.stk("sweep", config)
    assert f"another run than {before}" in told.err
    assert "seed" in told.err
    # These runs are now known.
    assert before not in user.stk("sweep", config).err


def test_cancel_removed_cancels_live_runs_that_were_removed(user: User, fake: FakeSlurm) -> None:
    config = sweep_of(user, "[0.1, 0.2, 0.3]")
    finish(ask(user, config)["runs"][1], 0.9)
    sweep_of(user, "[0.1]")
    assert user.stk("sweep", config, "--cancel-removed").code == 0
    assert fake.calls("scancel") == [["--", "101_2"]]


def test_a_removed_run_whose_next_job_may_live_on_is_named(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = sweep_of(user, "[0.1, 0.2]")
    removed = RunDir(Path(ask(user, config)["runs"][1]["run_dir"]))
    sweep_of(user, "[0.1]")
    monkeypatch.setattr("slurm.status.submissions._LOCK_S", 0.1)
    with FileLock(removed.lock):
        told = user.stk("sweep", config, "--cancel-removed")
    assert f"stk cancel {removed.run_id}" in told.err


def test_another_file_does_not_take_over_the_name_of_a_sweep(user: User, fake: FakeSlurm) -> None:
    ask(user, user.config, "seed=1,2")
    other = user.write("other.yaml", CONFIG)
    assert "another name with --name" in user.refused("sweep", other, "seed=3,4")
    assert len(fake.jobs) == 2
    assert ask(user, other, "seed=3,4", "--name", "mine")["sweep"] == "mine"
    assert read_record(folder(user)).config == str(user.config)


@pytest.mark.parametrize("name", ["../up", "a b", ".hidden"])
def test_invalid_sweep_name_is_refused(user: User, fake: FakeSlurm, name: str) -> None:
    assert "as a sweep's name" in user.refused("sweep", user.config, "seed=1,2", "--name", name)
    assert fake.jobs == []


def test_an_interrupt_while_folders_are_made_leaves_nothing(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    from slurm.submission import job_pickle

    def interrupt(run: RunDir) -> None:
        if run == user.run("seed=2"):
            raise KeyboardInterrupt
        pack(run)

    pack = job_pickle.pack
    monkeypatch.setattr(job_pickle, "pack", interrupt)
    before = user.listing
    assert user.stk("sweep", user.config, "seed=1,2,3").code == 130
    assert [path for path in user.listing if path not in before] == ["experiments", "experiments/sweeps"]


@pytest.mark.parametrize("answer, code", [("refuse", 3), ("commit", 0)])
def test_a_run_that_another_command_starts_meanwhile_is_left_to_it(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    """It has made the folder since the sweep looked."""
    other = user.run("seed=2")
    fake.submits(answer, "sbatch: error: Invalid account")
    with ExitStack() as stack:

        def fill(run: RunDir, experiment: Experiment, shared_code: Path | None = None) -> bool:
            if run == other and not run.path.exists():
                create_run(experiment, user.experiments)
                stack.enter_context(FileLock(run.alive))
            return fill_run(run, experiment, shared_code)

        monkeypatch.setattr("slurm.sweeps.submit_array.fill_run", fill)
        assert user.stk("sweep", user.config, "seed=1,2,3").code == code
    assert other.code.exists()
    assert not other.submissions.exists()
    assert len(user.runs) == (1 if code else 3)
    assert folder(user).record.exists() == (code == 0)


def test_a_refused_change_leaves_the_sweep_as_it_was(user: User, fake: FakeSlurm) -> None:
    ask(user, user.config, "seed=1,2")
    before = read_record(folder(user))
    fake.submits("refuse", "sbatch: error: Invalid account")
    assert user.stk("sweep", user.config, "seed=3,4").code == 3
    assert read_record(folder(user)) == before
    assert len(list(find_runs(user.experiments))) == 2


# -- many ways to say which ----------------------------------------------------------------------


def test_random_draws_stay_when_more_are_requested(user: User, fake: FakeSlurm) -> None:
    space = "optimizer.lr=loguniform(1e-4,1e-1)"
    few = ask(user, user.config, space, "--random", "2", "--seed", "5")["runs"]
    many = ask(user, user.config, space, "--random", "4", "--seed", "5")["runs"]
    assert [line["values"] for line in many[:2]] == [line["values"] for line in few]
    assert [line["change"] for line in many] == ["unchanged", "unchanged", "new", "new"]


def test_keys_are_zipped_and_each_run_gets_each_seed(user: User, fake: FakeSlurm) -> None:
    zipped = ["train.epochs=1,2", "optimizer.lr=0.1,0.2", "--zip", "train.epochs,optimizer.lr"]
    runs = ask(user, user.config, *zipped, "--seeds", "7,8")["runs"]
    assert [tuple(line["values"].values()) for line in runs] == [
        ("1", "0.1", "7"), ("1", "0.1", "8"), ("2", "0.2", "7"), ("2", "0.2", "8"),
    ]  # fmt: skip


def test_a_range_without_a_number_of_runs_says_what_is_missing(user: User) -> None:
    said = user.refused("sweep", user.config, "optimizer.lr=uniform(0,1)", "--cluster", "local")
    assert "--random N" in said


@pytest.mark.parametrize("proposed", [("--sampler", "tpe"), ("--samples", "5")])
def test_draws_at_random_and_proposals_in_one_command_are_refused(
    user: User, proposed: tuple[str, str]
) -> None:
    said = user.refused("sweep", user.config, "optimizer.lr=uniform(0,1)", "--random", "3", *proposed)
    assert "random does not go with" in said


def test_a_sampler_adds_runs_each_time_given_those_that_have_finished(user: User, fake: FakeSlurm) -> None:
    given = ["optimizer.lr=loguniform(1e-5,1e-1)", "--sampler", "tpe", "--samples", "3", "--seeds", "1,2"]
    first = ask(user, user.config, *given)["runs"]
    for line in first:
        finish(line, 0.5)
    again = ask(user, user.config, *given)["runs"]
    assert [line["change"] for line in again] == ["unchanged"] * 6 + ["new"] * 6
    assert len({line["values"]["optimizer.lr"] for line in again}) == 6


def test_a_sampler_adds_no_runs_when_the_command_is_repeated_after_a_lost_answer(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["optimizer.lr=loguniform(1e-5,1e-1)", "--sampler", "tpe", "--samples", "2"]
    fake.fails_once("sbatch", "sbatch: error: Socket timed out on send/recv operation")
    assert user.stk("sweep", user.config, *given).code == 3
    monkeypatch.setattr("slurm.status.submissions._LATE_S", 0.0)
    told = user.stk("sweep", user.config, *given)
    assert (told.code, len(fake.jobs)) == (0, 2)
    assert "answer about an array of tiny was lost" in told.err
    assert len(ask(user, user.config, *given)["runs"]) == 4


def test_a_sampler_may_be_what_sets_a_required_key(user: User, fake: FakeSlurm) -> None:
    user.config.write_text(CONFIG.replace("data: {path: reviews.tsv, ", "data: {"))
    given = ["data.path=choice(reviews.tsv,reviews.tsv)", "--sampler", "tpe", "--samples", "1"]
    assert len(ask(user, user.config, *given)["runs"]) == 1


# -- as many arrays as needed --------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits",
    ["MaxArraySize = 3", "MaxArraySize = 1001\nSchedulerParameters = bf_interval=2,max_array_tasks=3"],
)
def test_a_sweep_that_is_larger_than_an_array_becomes_several_under_one_throttle(
    user: User, fake: FakeSlurm, limits: str
) -> None:
    fake.answers("show config", f"{limits}\n")
    answer = ask(user, user.config, "seed=1,2,3,4,5,6,7", "--max-parallel", "2")
    assert answer["job_ids"] == ["101", "103", "105", "107"]
    arrays = read_arrays(folder(user))
    assert [len(array.runs) for array in arrays] == [2, 2, 2, 1]
    scripts = [(folder(user).array(array.name) / "script.sh").read_text() for array in arrays]
    assert [
        f"#SBATCH --array=0-{len(array.runs) - 1}%1\n" in script
        for array, script in zip(arrays, scripts, strict=True)
    ] == [True] * 4
    waits = [[line for line in script.splitlines() if "dependency" in line] for script in scripts]
    assert waits == [[], [], ["#SBATCH --dependency=afterany:101"], ["#SBATCH --dependency=afterany:103"]]
    assert len({run.code.resolve() for run in find_runs(user.experiments)}) == 1


def test_runs_above_the_submit_limit_wait_and_are_submitted_later(user: User, fake: FakeSlurm) -> None:
    fake.answers("show config", LIMITED)
    fake.accounts(account="lab", qos="", max_submit="3")
    told = user.stk("sweep", user.config, "seed=1,2,3,4").out
    assert "MaxSubmitJobs of account lab is 3, and it has 0 jobs of yours" in told
    assert ask(user, "status", "tiny")["counts"] == {"pending": 3, "waits": 1}
    assert ask(user, "resume", "tiny")["later"] == [user.run("seed=4").run_id]
    fake.change("101_0", state="COMPLETED")
    finish({"run_dir": str(user.run("seed=1").path)}, 0.9)
    user.config.write_text("changed: in the meantime\n")
    resumed = ask(user, "resume", "tiny")
    assert list(resumed["jobs"].values()) == ["104_0"]
    assert ask(user, "status", "tiny")["counts"] == {"finished": 1, "pending": 3}


def test_submit_limit_of_the_qos_counts_the_jobs_of_the_qos(user: User, fake: FakeSlurm) -> None:
    fake.answers("show config", LIMITED)
    fake.accounts(account="lab", qos="fast", max_submit="2", max_submit_of_qos="4")
    user.stk("submit", user.config)
    told = user.stk("sweep", user.config, "seed=1,2,3,4").out
    assert "MaxSubmitJobs of qos fast is 4, and it has 1 jobs of yours" in told
    assert len(fake.jobs) == 4


def test_folder_of_an_array_whose_answer_was_lost_stays(user: User, fake: FakeSlurm) -> None:
    """All of its runs exist already, from single submissions, so that none has been made for it."""
    for number, seed in enumerate((1, 2), start=101):
        assert user.stk("submit", user.config, f"seed={seed}").code == 0
        fake.change(str(number), state="CANCELLED")
    fake.refuses_after(2, "sbatch: error: Socket timed out on send/recv operation")
    assert user.stk("sweep", user.config, "seed=1,2").code == 3
    assert len(getattr(read_record(folder(user)), "members", ())) == 2
    assert list(folder(user).path.rglob("script.sh"))


@pytest.mark.parametrize("where", ["slurm", "local"])
def test_sweep_that_another_process_has_enlarged_is_not_overwritten(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    ask(user, user.config, "seed=1")
    stale = read_record(folder(user))
    ask(user, user.config, "seed=1,2")
    monkeypatch.setattr("slurm.sweeps.request.read_record", lambda _: stale)
    assert "repeat the command" in user.refused("sweep", user.config, "seed=1,3", "--cluster", where)
    assert len(getattr(read_record(folder(user)), "members", ())) == 2


def test_at_most_limits_the_submitted_runs(user: User, fake: FakeSlurm) -> None:
    answer = ask(user, user.config, "seed=1,2,3", "--at-most", "2")
    assert [line["job_id"] for line in answer["runs"]] == ["101_0", "101_1", None]
    assert answer["runs"][2]["skipped"].startswith("waits: --at-most is 2")
    again = ask(user, user.config, "seed=1,2,3")
    assert [line["change"] for line in again["runs"]] == ["unchanged", "unchanged", "new"]


def test_arrays_that_slurm_took_stay_when_it_refuses_the_next_one(user: User, fake: FakeSlurm) -> None:
    fake.answers("show config", "MaxArraySize = 2\n")
    fake.refuses_after(1, "sbatch: error: AssocMaxSubmitJobLimit")
    answer = ask(user, user.config, "seed=1,2,3,4")
    assert [line["job_id"] for line in answer["runs"]] == ["101_0", "101_1", None, None]
    assert "AssocMaxSubmitJobLimit" in answer["runs"][3]["skipped"]
    assert len(list(find_runs(user.experiments))) == 2


def test_arrays_that_slurm_took_stay_when_its_controller_is_lost_before_the_next_one(
    user: User, fake: FakeSlurm
) -> None:
    ask(user, user.config, "seed=1")
    fake.answers("show config", "MaxArraySize = 2\n")
    fake.refuses_after(2, "sbatch: error: Unable to contact slurm controller (connect failure)")
    told = user.stk("sweep", user.config, "seed=1,2,3,4,5", "--json")
    assert told.code == ExitCode.SCHEDULER
    answer = json.loads(told.out)
    assert [line["job_id"] for line in answer["runs"][1:]] == ["102_0", "102_1", None, None]
    assert "Unable to contact" in answer["runs"][4]["skipped"]
    assert len(read_record(folder(user)).members) == 5


def test_runs_behind_an_array_whose_answer_was_lost_are_resumed(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.answers("show config", "MaxArraySize = 2\n")
    fake.refuses_after(1, "sbatch: error: Socket timed out on send/recv operation")
    assert user.stk("sweep", user.config, "seed=1,2,3,4,5,6").code == 3
    monkeypatch.setattr("slurm.status.submissions._LATE_S", 0.0)
    fake.submits("commit")
    left = [user.run(f"seed={seed}").run_id for seed in (3, 4, 5, 6)]
    assert list(ask(user, "resume", "tiny")["jobs"]) == left
