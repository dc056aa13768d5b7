"""`stk.plan`, `submit` and `sweep` on a pretend Slurm: they do what the commands do, and print nothing."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import stk
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import User
from toolkit.files import write_json
from toolkit.run.run_dir import RunDir

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What happens while it is waited for: one of these in each pause, in place of sleeping."""
    events: list[Callable[[], None]] = []

    def sleep(seconds: float) -> None:
        if events:
            events.pop(0)()

    monkeypatch.setattr("slurm.api.handle.sleep", sleep)
    return events


def test_plan_equals_that_of_the_command(user: User, fake: FakeSlurm) -> None:
    plan = stk.plan(user.config, {"resources.nodes": 2, "train.batch_size": 16})
    words = ("resources.nodes=2", "train.batch_size=16")
    told = json.loads(user.stk("plan", user.config, *words, "--json").out)
    assert (plan.script, plan.config) == (told["script"], told["config"])
    assert f"{plan}\n" == f"{plan!r}\n" == user.stk("plan", user.config, *words).out
    assert (plan.run_id, plan.folder) == (user.run(*words).run_id, user.run(*words).path)
    assert user.runs == []


def test_a_job_is_submitted_and_nothing_is_printed(
    user: User, fake: FakeSlurm, capfd: pytest.CaptureFixture[str]
) -> None:
    run = stk.submit(str(user.config), {"train.device": "cpu"}, cluster="slurm")
    assert capfd.readouterr() == ("", "")
    assert run.folder == user.run("train.device=cpu").path
    assert run.status()["job_id"] == "101"
    assert "101" in repr(run)
    with pytest.raises(stk.UserError, match="cannot be started twice"):
        stk.submit(user.config, {"train.device": "cpu"}, cluster="slurm")


def test_values_mean_the_same_as_on_the_command_line(user: User, fake: FakeSlurm) -> None:
    values = {"optimizer.lr": 1e-05, "resources.time": "1:00:00", "resources.comment": "a, b: ${x}"[:4]}
    found = stk.plan(user.config, values, overrides=None).config
    assert found["optimizer"]["lr"] == 1e-05
    assert found["resources"]["comment"] == "a, b"
    lists = stk.plan(user.config, overrides={"model.kernels": (2, 3), "data.prepared_dir": Path("p")}).config
    assert lists["model"]["kernels"] == [2, 3]


def test_numbers_and_arrays_of_other_libraries_mean_the_same_as_plain_ones(
    user: User, fake: FakeSlurm
) -> None:
    expected = stk.plan(user.config, {"seed": 3, "optimizer.lr": 0.25, "model.kernels": [2, 3]})
    for kernels in (np.array([2, 3]), range(2, 4), (np.int32(2), 3), torch.tensor([2, 3])):
        values = {"seed": np.int64(3), "optimizer.lr": np.float32(0.25), "model.kernels": kernels}
        assert stk.plan(user.config, values).run_id == expected.run_id
    assert stk.plan(user.config, {"seed": torch.tensor(3)}).config["seed"] == 3
    switched = {"train.find_unused_parameters": np.bool_(True)}
    assert stk.plan(user.config, switched).config["train"]["find_unused_parameters"] is True


def test_warnings_of_a_command_are_python_warnings_at_the_caller(user: User, fake: FakeSlurm) -> None:
    values = {"train.epochs": None, "train.steps": 10, "lr_scheduler.warmup": 5000}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stk.plan(user.config, values)
        of_plan = len(caught)
        stk.submit(user.config, values)
    told = [str(each.message) for each in caught if "lr_scheduler.warmup" in str(each.message)]
    assert len(told) == 2
    assert 0 < of_plan < len(caught)
    assert {each.filename for each in caught} == {__file__}


def test_result_waits_through_a_requeue_and_an_absent_controller(
    user: User, fake: FakeSlurm, sleeps: list[Callable[[], None]]
) -> None:
    run = stk.submit(user.config, cluster="slurm")
    folder = RunDir(run.folder)
    sleeps += [
        lambda: fake.change("101", state="RUNNING", hosts="n1"),
        lambda: fake.change("101", state="PENDING", reason="BeginTime", restarts="1"),
        lambda: fake.goes_away(),
        lambda: fake.comes_back(),
        lambda: write_json(folder.result, {"state": "finished", "step": 3, "metrics": {}}),
    ]
    assert run.result()["step"] == 3
    assert sleeps == []


def test_cancelled_state_counts_once_it_is_seen_twice(
    user: User, fake: FakeSlurm, sleeps: list[Callable[[], None]]
) -> None:
    run = stk.submit(user.config, cluster="slurm")
    fake.change("101", state="CANCELLED", reason="None")
    sleeps += [
        lambda: fake.change("101", state="RUNNING", hosts="n1"),
        lambda: fake.change("101", state="CANCELLED", reason="None"),
    ]
    with pytest.raises(stk.RunCancelled, match=run.id):
        run.result()
    assert sleeps == []


def test_cancel_calls_scancel_for_the_job(user: User, fake: FakeSlurm) -> None:
    run = stk.submit(user.config, cluster="slurm")
    run.cancel()
    assert fake.calls("scancel") == [["--", "101"]]


def test_sweep_is_submitted_as_an_array(user: User, fake: FakeSlurm) -> None:
    values = {"seed": [1, 2], "optimizer.lr": [1e-3, 1e-4], "train.batch_size": 16}
    runs = stk.sweep(user.config, values, name="both", cluster="slurm")
    assert [run.status()["job_id"] for run in runs] == [f"101_{task}" for task in range(4)]
    assert sorted(run.id for run in runs) == user.runs


@pytest.mark.parametrize("seeds", [range(1, 3), (1, 2), np.arange(1, 3), torch.tensor([1, 2])])
def test_each_number_of_a_range_or_array_is_a_run_of_a_sweep(user: User, fake: FakeSlurm, seeds: Any) -> None:
    runs = stk.sweep(user.config, {"seed": seeds, "optimizer.lr": np.float64(0.25)}, cluster="slurm")
    assert [run.id for run in runs] == [
        user.run(f"seed={seed}", "optimizer.lr=0.25").run_id for seed in (1, 2)
    ]


def test_text_with_a_comma_is_one_value_of_a_sweep(user: User, fake: FakeSlurm) -> None:
    with pytest.warns(UserWarning, match="one run"):
        (run,) = stk.sweep(user.config, {"resources.comment": "a,b"}, cluster="slurm")
    assert "comment: a,b\n" in (run.folder / "config.yaml").read_text()


@pytest.mark.parametrize("drawn", ["uniform(0, 0.5)", "loguniform(1e-5, 1e-2)", "choice(0.1, 0.2)"])
def test_a_range_is_given_as_a_text(user: User, fake: FakeSlurm, drawn: str) -> None:
    runs = stk.sweep(user.config, {"optimizer.lr": drawn}, random=2, cluster="slurm")
    assert len(runs) == 2


def test_options_of_a_sweep_may_be_numbers_of_numpy(user: User, fake: FakeSlurm) -> None:
    drawn, one = {"optimizer.lr": "uniform(0, 0.5)"}, np.int64(1)
    found = stk.sweep(
        user.config, drawn, random=np.int64(2), seed=one, seeds=[one], max_parallel=one, cluster="slurm"
    )
    assert found == stk.sweep(user.config, drawn, random=2, seed=1, seeds=[1], cluster="slurm")


def test_unreachable_controller_raises_scheduler_error(user: User, fake: FakeSlurm) -> None:
    fake.goes_away()
    with pytest.raises(stk.SchedulerError):
        stk.submit(user.config, cluster="slurm")
    assert user.runs == []


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda config: stk.submit("nothing.yaml"), "there is no such file"),
        (lambda config: stk.submit(config, ["train.epochs=1"]), "dictionary"),
        (lambda config: stk.submit(config, {"train.epochs": 1}, {"seed": 1}), "one dictionary"),
        (lambda config: stk.submit(config, {"train.epochs": object()}), "train.epochs: found <object"),
        (lambda config: stk.submit(config, {"train.epochz": 1}), "epochs"),
        (lambda config: stk.submit(config, {1: 2}), "key 1"),
        (lambda config: stk.submit(config, cluster="aws"), "auto, slurm, local"),
        (lambda config: stk.submit(config, epochs=3), "no option 'epochs'"),
        (lambda config: stk.submit(3), "expected the name of an experiment file"),
        (lambda config: stk.sweep(config, {"seed": []}), "empty list"),
        (lambda config: stk.sweep(config, {"seed": range(0)}), "empty list"),
        (lambda config: stk.sweep(config), "nothing to sweep"),
        (lambda config: stk.sweep(config, {"seed": [1]}, seeds=3), "seeds is 3"),
        (lambda config: stk.sweep(config, {"seed": [1]}, seeds="12"), "seeds is '12'"),
        (lambda config: stk.sweep(config, {"seed": [1]}, zipped=3), "zipped is 3"),
        (lambda config: stk.plan(config, {"seed": 10**5000}), "seed: found a whole number"),
        (lambda config: stk.Run("nothing"), "no run 'nothing'"),
        (lambda config: stk.runs(3), "expected a pattern"),
    ],
)
def test_invalid_arguments_raise_user_error_and_write_nothing(
    user: User, fake: FakeSlurm, call: Callable[[Path], Any], words: str
) -> None:
    before = user.listing
    with pytest.raises(stk.UserError) as raised:
        call(user.config)
    assert words in str(raised.value)
    assert user.listing == before


def test_runs_returns_an_empty_list_without_runs(user: User) -> None:
    assert stk.runs() == stk.runs("tiny-*") == []
