"""A sweep whose runs are trained here, one after the other."""

from __future__ import annotations

import pytest

from slurm.commands.experiments import sweep_actions
from slurm.sweeps.candidates import Candidate
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import User
from tests.slurm.sweeps.asking import ask, finish, folder
from toolkit.errors import RunBusy
from toolkit.exit_codes import ExitCode
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir

# -- status, cancel, resume ----------------------------------------------------------------------


@pytest.mark.parametrize("others_write", [True, False])
@pytest.mark.parametrize("words", [("resume", "tiny"), ("tiny.yaml", "seed=1,2")])
def test_a_sweep_that_others_may_write_is_not_trained_here(
    user: User, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], others_write: bool
) -> None:
    ask(user, user.config, "seed=1,2", "--at-most", "1")
    waiting = folder(user).waiting
    waiting.chmod(0o666 if others_write else 0o644)
    before = waiting.stat()
    trained: list[RunDir] = []
    monkeypatch.setattr(sweep_actions, "_train_one", lambda one, **_: trained.append(one.run) or 0)
    fake.change("101_0", state="COMPLETED")
    told = user.stk("sweep", *words, "--cluster", "local")
    if not others_write:
        assert (told.code, user.run("seed=2") in trained) == (0, True)
        return
    assert (told.code, trained, waiting.stat()) == (2, [], before)
    assert user.stk("sweep", *words, "--cluster", "local", "--dry-run").code == 0, "it executes nothing"
    for fact in (str(waiting), "everybody", "--trust-folder"):
        assert fact in told.err


def test_a_local_sweep_that_was_interrupted_resumes_the_runs_that_it_never_began(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(one: Candidate, *, quiet: bool) -> int:
        create_run(one.experiment, user.experiments)
        return ExitCode.INTERRUPTED

    monkeypatch.setattr("slurm.commands.experiments.sweep_actions._train_one", interrupt)
    assert user.stk("sweep", user.config, "seed=1,2,3", "--cluster", "local").code == 130
    assert user.runs == [user.run("seed=1").run_id]
    everyone = [user.run(f"seed={seed}").run_id for seed in (1, 2, 3)]
    assert ask(user, "resume", "tiny", "--dry-run")["resumed"] == everyone


def test_a_local_sweep_leaves_out_runs_that_another_one_has_trained_meanwhile(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train(one: Candidate, *, quiet: bool) -> int:
        trained.append(one.run)
        other = create_run(user.experiment("seed=2"), user.experiments)
        finish({"run_dir": str(other.path)}, 0.9)
        return 0

    trained: list[RunDir] = []
    monkeypatch.setattr("slurm.commands.experiments.sweep_actions._train_one", train)
    assert user.stk("sweep", user.config, "seed=1,2,3", "--cluster", "local").code == 0
    assert trained == [user.run("seed=1"), user.run("seed=3")]


@pytest.mark.parametrize("state", ["finished", "refused"])
def test_a_local_sweep_leaves_out_a_run_that_another_command_starts_in_between(
    user: User, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    def train(one: Candidate, *, quiet: bool) -> int:
        run = create_run(one.experiment, user.experiments)
        if state == "finished":
            finish({"run_dir": str(run.path)}, 0.9)
        return RunBusy.exit_code

    monkeypatch.setattr("slurm.commands.experiments.sweep_actions._train_one", train)
    told = user.stk("sweep", user.config, "seed=1,2", "--cluster", "local")
    is_left_out = state != "refused"
    assert (told.code == 0, told.err.count("left out: ")) == (is_left_out, 2 * is_left_out)


def test_at_most_limits_a_local_sweep_and_resume_trains_the_others(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train(one: Candidate, *, quiet: bool) -> int:
        finish({"run_dir": str(create_run(one.experiment, user.experiments).path)}, 0.9)
        return 0

    monkeypatch.setattr("slurm.commands.experiments.sweep_actions._train_one", train)
    local = ("--cluster", "local", "--at-most", "1")
    first, second, third = ask(user, user.config, "seed=1,2,3", *local)["runs"]
    assert [each["state"] for each in (first, second, third)] == ["finished", None, None]
    assert second["skipped"] == third["skipped"] == "waits: --at-most is 1"
    found = ask(user, "resume", "tiny", *local)
    assert (found["resumed"], found["later"]) == ([second["run_id"]], [third["run_id"]])
    told = user.stk("sweep", "resume", "tiny", *local)
    assert f"1 of 1: {third['run_id']}" in told.err
    assert "report  stk sweep report tiny" in told.out


@pytest.mark.parametrize("words", [["resume", "tiny"], ["tiny.yaml", "seed=1,2"]], ids=["resume", "again"])
def test_a_sweep_of_slurm_does_not_go_on_here_while_no_controller_answers(
    user: User, fake: FakeSlurm, words: list[str]
) -> None:
    first, _ = ask(user, user.config, "seed=1,2", "--at-most", "1")["runs"]
    finish(first, 0.9)
    fake.goes_away()
    assert user.stk("sweep", *words, "--dry-run").code == 3
    assert user.stk("sweep", *words, "--dry-run", "--cluster", "local").code == 0
