"""`stk sweep status`, `cancel` and `resume`."""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from unittest.mock import patch

import pytest
from filelock import FileLock

from slurm.runs.cancel_requeue import cancel as cancel_one
from slurm.status.rows import RunStatus, status
from slurm.status.submissions import intend, record, submissions
from slurm.sweeps import actions
from slurm.sweeps.actions import cancel
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import CONFIG, User
from tests.slurm.sweeps.asking import ask, finish, folder
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir
from toolkit.sweeps.folder import read_arrays

# -- status, cancel, resume ----------------------------------------------------------------------


def test_status_lists_live_runs_first_and_finished_runs_last(user: User, fake: FakeSlurm) -> None:
    runs = ask(user, user.config, "seed=1,2,3")["runs"]
    finish(runs[0], 0.9)
    fake.change("101_1", state="CANCELLED", reason="None")
    told = user.stk("sweep", "status", "tiny").out.splitlines()
    assert told[0] == "sweep tiny: 3 runs, 1 pending, 1 cancelled, 1 finished"
    assert [line.split()[0] for line in told[2:5]] == ["3", "2", "1"]
    assert ask(user, "status")["counts"] == {"finished": 1, "cancelled": 1, "pending": 1}


def test_cancel_ends_all_live_tasks_with_one_call(user: User, fake: FakeSlurm) -> None:
    first, second, third = ask(user, user.config, "seed=1,2,3")["runs"]
    finish(second, 0.9)
    live = [first["run_id"], third["run_id"]]
    assert ask(user, "cancel", "tiny", "--dry-run")["cancelled"] == live
    told = user.stk("sweep", "cancel", "tiny", "--dry-run").out.splitlines()
    assert [line.split() for line in told] == [[run_id, "pending"] for run_id in live]
    assert fake.calls("scancel") == []
    assert ask(user, "cancel", "tiny")["cancelled"] == live
    assert fake.calls("scancel") == [["--", "101_0", "101_2"]]
    fake.change("101_0", state="CANCELLED")
    fake.change("101_2", state="CANCELLED")
    assert "nothing to cancel" in user.stk("sweep", "cancel", "tiny").out


def test_cancelled_runs_stay_cancelled_after_slurm_has_forgotten_their_jobs(
    user: User, fake: FakeSlurm
) -> None:
    ask(user, user.config, "seed=1,2")
    user.stk("sweep", "cancel", "tiny")
    fake.forget("101_0", "101_1")
    assert ask(user, "status")["counts"] == {"cancelled": 2}


def test_cancel_names_the_suspended_runs_that_could_not_save(user: User, fake: FakeSlurm) -> None:
    first, second = ask(user, user.config, "seed=1,2")["runs"]
    fake.change("101_1", state="SUSPENDED")
    told = user.stk("sweep", "cancel", "tiny").err
    assert f"{second['run_id']}: it was suspended" in told
    assert first["run_id"] not in told


def test_cancel_leaves_a_run_that_continues_in_a_terminal_and_ends_the_others(
    user: User, fake: FakeSlurm
) -> None:
    ask(user, user.config, "seed=1,2")
    fake.change("101_0", state="CANCELLED", reason="None")
    run = user.run("seed=1")
    with FileLock(run.alive):
        found = ask(user, "cancel", "tiny")
    assert (found["cancelled"], found["elsewhere"]) == ([user.run("seed=2").run_id], [run.run_id])
    assert fake.calls("scancel") == [["--", "101_1"]]
    fake.change("101_1", state="CANCELLED")
    with FileLock(run.alive):
        told = user.stk("sweep", "cancel", "tiny").out
        again = user.stk("sweep", user.config, "seed=2", "--name", "tiny", "--cancel-removed").err
    assert run.run_id in told
    assert "nothing to cancel" not in told
    assert f"{run.run_id} runs in a terminal" in again


def test_cancel_names_removed_runs_that_are_live(user: User, fake: FakeSlurm) -> None:
    ask(user, user.config, "seed=1,2")
    user.stk("sweep", user.config, "seed=1", "--name", "tiny")
    assert "removed runs that are live: 1" in user.stk("sweep", "cancel", "tiny").out
    assert "--cancel-removed" not in user.stk("sweep", "cancel", "tiny", "--cancel-removed").out


def test_new_code_that_live_runs_do_not_get_is_named(user: User, fake: FakeSlurm) -> None:
    ask(user, user.config, "seed=1,2")
    assert "live and keep their code: 2" in user.stk("sweep", user.config, "seed=1,2", "--new-code").err


def test_runs_that_may_be_live_keep_their_code(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy controller answers a ping, and not squeue."""
    ask(user, user.config, "seed=1,2")
    fake.refuses("squeue", "slurm_load_jobs error: Socket timed out on send/recv operation")
    renewed: list[object] = []
    monkeypatch.setattr(actions, "edit_warnings_of_many", lambda there, **_: renewed.extend(there) or [])
    assert user.stk("sweep", "resume", "tiny", "--new-code").code == 3
    assert renewed == []


@pytest.mark.parametrize("here", [True, False], ids=["here", "in a job"])
def test_a_run_that_another_command_has_just_started_keeps_its_code(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch, here: bool
) -> None:
    ask(user, user.config, "seed=1,2")
    started, other = user.run("seed=1"), user.run("seed=2")
    for job in ("101_0", "101_1"):
        fake.change(job, state="CANCELLED")
    renewed: list[RunDir] = []
    with ExitStack() as stack:

        def start(*_: object, **__: object) -> list[str]:
            if here:
                stack.enter_context(FileLock(started.alive))
            else:
                assert user.stk("submit", user.config, "seed=1").code == 0
            return ["edited"]

        monkeypatch.setattr(actions, "edit_warnings_of_many", start)
        monkeypatch.setattr(actions, "take_new_code", lambda run, *_, **__: renewed.append(run))
        assert list(ask(user, "resume", "tiny", "--new-code")["jobs"]) == [other.run_id]
    assert renewed == [other]


def test_status_says_why_a_pending_run_never_starts(user: User, fake: FakeSlurm) -> None:
    ask(user, user.config, "seed=1,2")
    fake.change("101_0", reason="PartitionTimeLimit")
    fake.change("101_1", reason="Priority")
    told = user.stk("sweep", "status", "tiny").out
    assert "lower resources.time" in told
    assert "Priority" not in told


def test_cancel_ends_the_next_job_of_a_run_that_submits_it_just_then(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at a time limit. The submitter may have been ended before it wrote the id down."""
    ask(user, user.config, "seed=1,2")
    first, second = user.run("seed=1"), user.run("seed=2")

    def submit_next(*ids: str) -> None:
        intend(first, "tiny.1")
        fake.add("102", name="tiny.1", work_dir=str(first.path))
        cancelled.extend(ids)

    cancelled: list[str] = []
    monkeypatch.setattr("slurm.client.programs.cancel", submit_next)
    monkeypatch.setattr("slurm.status.submissions._LOCK_S", 0.1)
    with FileLock(second.lock):
        told = user.stk("sweep", "cancel", "tiny")
    assert cancelled == ["101_0", "101_1", "102"]
    assert f"stk cancel {second.run_id}" in told.err
    assert f"stk cancel {first.run_id}" not in told.err


def test_the_status_of_runs_is_asked_for_by_the_name_of_their_sweep(user: User, fake: FakeSlurm) -> None:
    ask(user, user.config, "seed=1,2")
    user.stk("submit", user.config, "seed=3")
    fake.change("101_0", state="CANCELLED")
    user.stk("resume", user.run("seed=1").run_id)
    for pattern in ("tiny", "t*"):
        rows = json.loads(user.stk("status", "--sweep", pattern, "--json").out)
        assert {row["run_id"] for row in rows} == {user.run(f"seed={seed}").run_id for seed in (1, 2)}


def test_a_local_launcher_that_has_just_ended_is_no_error(
    user: User, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(run, cluster="local", job_id="local-1234", name="tiny")
    asked: list[int] = []

    def kill(pid: int, number: int) -> None:
        asked.append(pid)
        raise ProcessLookupError

    monkeypatch.setattr("os.kill", kill)
    for module in ("slurm.sweeps.actions", "slurm.runs.cancel_requeue"):
        monkeypatch.setattr(f"{module}.is_launcher_alive", lambda *_: True)
    row = RunStatus(run_id=run.run_id, run_dir="", job_id=None, state="running", is_live=True)
    assert cancel_one(run, row)
    assert cancel(folder(user), [row]).runs == [run.run_id]
    assert asked == [1234, 1234]


def test_launcher_of_another_user_is_named_and_the_other_runs_are_cancelled(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(pid: int, number: int) -> None:
        if pid == 1:
            raise PermissionError

    monkeypatch.setattr("os.kill", kill)
    for module in ("slurm.sweeps.actions", "slurm.runs.cancel_requeue"):
        monkeypatch.setattr(f"{module}.is_launcher_alive", lambda *_: True)
    with ExitStack() as stack:
        runs = [create_run(user.experiment(f"seed={number}"), user.experiments) for number in (1, 2)]
        for number, run in enumerate(runs, start=1):
            record(run, cluster="local", job_id=f"local-{number}", name="tiny")
            stack.enter_context(FileLock(run.alive))
        theirs, own = (run.run_id for run in runs)
        told = user.stk("cancel", theirs, own)
        assert f"{theirs} was started by another user (process 1)" in told.err
        assert f"{own}: asked to save and exit" in told.out
        assert cancel(folder(user), status(runs)) == ([own], [theirs], [])


def test_resume_submits_ended_runs_again(user: User, fake: FakeSlurm) -> None:
    runs = ask(user, user.config, "seed=1,2,3")["runs"]
    finish(runs[0], 0.9)
    fake.change("101_2", state="CANCELLED")
    assert ask(user, "resume", "tiny", "--dry-run")["resumed"] == [runs[2]["run_id"]]
    resumed = ask(user, "resume", "tiny")
    assert resumed["jobs"] == {runs[2]["run_id"]: "104_0"}
    assert [each.job_id for each in submissions(user.run("seed=3"))] == ["101_2", "104_0"]


def test_a_run_whose_folder_was_deleted_neither_waits_nor_has_finished(user: User, fake: FakeSlurm) -> None:
    ask(user, user.config, "seed=1,2,3", "--at-most", "2")
    deleted, last = user.run("seed=1"), user.run("seed=3")
    shutil.rmtree(deleted.path)
    found = ask(user, "status", "tiny")
    assert found["counts"] == {"no folder": 1, "pending": 1, "waits": 1}
    assert (found["runs"][0]["run_id"], found["runs"][0]["state"]) == (deleted.run_id, "no folder")
    assert "1 no folder" in user.stk("sweep", "status", "tiny").out
    assert ask(user, "resume", "tiny")["resumed"] == [last.run_id]
    told = user.stk("sweep", "resume", "tiny")
    assert f"makes it anew: {deleted.run_id}" in told.err
    assert told.out == ""


def test_a_damaged_config_of_an_ended_run_does_not_stop_the_others(user: User, fake: FakeSlurm) -> None:
    ask(user, user.config, "seed=1,2")
    for task in (0, 1):
        fake.change(f"101_{task}", state="CANCELLED")
    damaged = user.run("seed=1")
    damaged.config.write_text("task: {")
    told = user.stk("sweep", "resume", "tiny", "--json")
    assert (told.code, json.loads(told.out)["resumed"]) == (0, [user.run("seed=2").run_id])
    assert "a run is left out" in told.err
    assert damaged.run_id in told.err
    # Of nothing but damaged runs the command says why it starts none.
    user.run("seed=2").config.write_text("task: {")
    fake.change(fake.jobs[-1]["job_id"], state="CANCELLED")
    assert user.stk("sweep", "resume", "tiny").code == 2


def test_resume_asks_for_what_each_run_asked_for_last(user: User, fake: FakeSlurm) -> None:
    ask(user, user.config, "seed=1,2,3", "--max-parallel", "2")
    for task in (0, 1, 2):
        fake.change(f"101_{task}", state="CANCELLED")
    assert user.stk("submit", user.config, "seed=1", "--time", "8:00:00").code == 0
    fake.change("104", state="CANCELLED")
    jobs = ask(user, "resume", "tiny")["jobs"]
    # The larger array comes first, and has the whole throttle.
    assert [jobs[user.run(f"seed={seed}").run_id] for seed in (2, 3, 1)] == ["105_0", "105_1", "107_0"]
    folders = [folder(user).array(array.name) for array in read_arrays(folder(user))[1:]]
    first, second = ((each / "script.sh").read_text() for each in folders)
    assert "--time" not in first
    assert "#SBATCH --time=8:00:00\n" in second
    # At most two of all at the same time.
    assert "#SBATCH --dependency=afterany:105\n" in second


@pytest.mark.parametrize("gone", [True, False], ids=["no answer", "no answer of squeue"])
def test_tasks_are_not_submitted_again_while_slurm_does_not_answer(
    user: User, fake: FakeSlurm, gone: bool
) -> None:
    ask(user, user.config, "seed=1,2")
    if gone:
        fake.goes_away()
    else:
        fake.refuses("squeue", "slurm_load_jobs error: Socket timed out on send/recv operation")
    for action in ("resume", "cancel"):
        assert user.stk("sweep", action, "tiny").code == 3
    assert len(fake.calls("sbatch")) == 1
    assert not user.run("seed=1").attempts.exists()


@pytest.mark.parametrize("arguments, problem", [
    (["status", "none"], "no sweep 'none' under"),
    (["status", "tin", "er"], "one sweep at a time"),
    (["cancel", "--name", "none"], "no sweep 'none' under"),
    (["resume", "tiny", "--time", "8:00:00"], "take no keys: `stk sweep FILE`"),
    (["report", "tiny", "--metric", "f1"], "no finished run has the metric validation.f1; they have"),
])  # fmt: skip
def test_invalid_arguments_are_refused(
    user: User, fake: FakeSlurm, arguments: list[str], problem: str
) -> None:
    finish(ask(user, user.config, "seed=1,2")["runs"][0], 0.9)
    assert problem in user.refused("sweep", *arguments)


def test_name_of_the_only_sweep_may_be_left_out(user: User, fake: FakeSlurm) -> None:
    assert "there are: none" in user.refused("sweep", "status")
    ask(user, user.config, "seed=1,2")
    assert ask(user, "status")["sweep"] == "tiny"


def test_a_file_that_is_called_like_an_action_is_given_with_its_folder(user: User, fake: FakeSlurm) -> None:
    user.write("status", CONFIG)
    assert ask(user, "./status", "seed=1,2")["sweep"] == "tiny"


def test_a_damaged_record_is_named(user: User, fake: FakeSlurm) -> None:
    ask(user, user.config, "seed=1,2")
    folder(user).record.write_text("{")
    assert "sweep.json is damaged" in user.refused("sweep", "status", "tiny")


def test_a_pipe_gets_tables_of_full_width(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")
    keys = ["optimizer.lr=0.0001234,0.0005678", "optimizer.no_decay=[bias],[norm]", "seed=1000001,1000002"]
    given = [user.config, f"name={'n' * 50}", *keys]
    shown = [user.stk("sweep", *given).out, user.stk("sweep", "status").out]
    for line in ask(user, "status")["runs"]:
        finish(line, 0.9)
    shown.append(user.stk("sweep", "report").out)
    for text in shown:
        assert all(value in text for value in ("0.0001234", "[bias]", "1000002"))
    assert "101_0" in shown[1]
    assert max(map(len, "".join(shown).splitlines())) < 200


def test_runs_share_one_copy_of_the_code_until_one_is_started_alone(user: User, fake: FakeSlurm) -> None:
    ask(user, user.config, "seed=1,2")
    one, two = user.run("seed=1"), user.run("seed=2")
    assert one.code.is_symlink()
    assert one.code.resolve() == two.code.resolve()
    fake.change("101_0", state="CANCELLED")
    assert user.stk("resume", one.run_id).code == 0
    assert not one.code.is_symlink()
    shared = two.code / "slurm" / "cli.py"
    assert (one.code / "slurm" / "cli.py").samefile(shared)
    shutil.rmtree(two.code.resolve())
    assert (one.code / "toolkit" / "run" / "run_dir.py").is_file()


def test_resumed_runs_keep_their_code_without_a_further_copy(user: User, fake: FakeSlurm) -> None:
    ask(user, user.config, "seed=1,2")
    fake.change("101_0", state="CANCELLED")
    with patch("slurm.sweeps.submission.copy_code") as copied:
        ask(user, "resume", "tiny")
    copied.assert_not_called()
