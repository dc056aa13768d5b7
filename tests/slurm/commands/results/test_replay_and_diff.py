"""`stk replay` and `stk diff` on runs of this machine: one that finished, others that did not."""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slurm.commands.results import replay
from tests.slurm.support.user import Answer, User, user_in
from tests.support.patience import PATIENCE_S, until
from toolkit.files import read_json_lines
from toolkit.run.events import note_event
from toolkit.run.kept_code.edited_code import NEW_CODE
from toolkit.run.records.step_records import read_saves
from toolkit.run.run_dir import RunDir

#: 4 steps an epoch, 12 in all; a save after each epoch.
THREE = "train.epochs=3"


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    """One working folder, without Slurm; each run in it is trained once."""
    with user_in(tmp_path_factory.mktemp("user")) as user:
        yield user


def train(user: User, *arguments: str) -> RunDir:
    """A run trained by `stk run`, on the CPU."""
    arguments = (*arguments, "train.device=cpu")
    answer = user.call("run", user.config, *arguments)
    assert answer.code == 0, answer.err
    return user.run(*arguments)


@pytest.fixture(scope="module")
def finished(user: User) -> RunDir:
    return train(user, THREE)


@pytest.fixture
def copy(finished: RunDir, tmp_path: Path) -> RunDir:
    """A copy of the finished run, to be changed."""
    run = RunDir(tmp_path / finished.run_id)
    shutil.copytree(finished.path, run.path, symlinks=True)
    return run


def contents(run: RunDir) -> dict[str, int]:
    """Everything in a run's folder, with the time of its last change."""
    return {str(path.relative_to(run.path)): path.lstat().st_mtime_ns for path in run.path.rglob("*")}


def nearest(run: RunDir, step: int) -> int:
    """The checkpoint that a step is computed from; on a busy machine some saves are left out."""
    return max(each for each in run.checkpoint_steps() if each < step)


def document(answer: Answer) -> Any:
    assert answer.code in (0, 1), answer.err
    return json.loads(answer.out)


# -- replay --------------------------------------------------------------------------------------


def test_replay_shows_rate_losses_and_texts_and_changes_nothing(user: User, finished: RunDir) -> None:
    before = contents(finished)
    answer = user.stk("replay", finished.run_id, "--step", 7)
    assert answer.code == 0, answer.err
    lines = answer.out.splitlines()
    assert lines[0] == f"step 7 of 9, {finished.run_id}, epoch 2.3333"
    between = 6 - nearest(finished, 7)
    assert f"checkpoint {6 - between}, {f'{between} steps in between, ' if between else ''}on cpu" in lines[1]
    assert "  trained on        1 process on cpu" in lines
    assert (
        "  compared          equal to its record: the same samples, and the same loss to the last bit"
        in lines
    )
    assert re.search(r"^  learning rate     \d", answer.out, re.MULTILINE)
    assert len(re.findall(r"^micro-batch \d: loss \d\.\d+$", answer.out, re.MULTILINE)) == 8
    assert re.search(r"^ +\d+  reviews.tsv:\d+  \[(good|bad)\]  \w+", answer.out, re.MULTILINE)
    assert contents(finished) == before


def test_replay_json_is_one_document(user: User, finished: RunDir) -> None:
    found = document(user.stk("replay", finished.run_id, "--step", 9, "--json"))
    assert (found["step"], found["recomputed"], found["verdict"]) == (9, 8 - nearest(finished, 9), "exact")
    record = next(line for line in read_json_lines(finished.step_records) if line["step"] == 9)
    assert found["loss"] == record["loss"] == found["receipt"]["loss"]
    samples = [sample["sample"] for part in found["micro_batches"] for sample in part["samples"]]
    assert len(set(samples)) == len(samples) == found["count"] == 32
    assert found["trained_on"] == ["1 process on cpu"]


def test_a_whole_sum_of_weights_is_shown_as_a_number_of_samples(
    user: User, finished: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task of functions counts in single precision."""
    compute = replay._compute
    monkeypatch.setattr(replay, "_compute", lambda *given: {**compute(*given), "count": 32.0})
    assert " over 32, mean " in user.stk("replay", finished.run_id, "--step", 9).out


def test_replay_on_another_kind_of_device_is_no_comparison(user: User, copy: RunDir) -> None:
    copy.attempts.write_text(copy.attempts.read_text().replace('"device": "cpu"', '"device": "cuda"'))
    records = copy.step_records.read_text()
    copy.step_records.write_text(re.sub(r'("step": 7, .*"loss": )\d', r"\g<1>9", records))
    answer = user.stk("replay", copy.path, "--step", 7, "--json")
    assert (answer.code, document(answer)["verdict"]) == (0, "other_device")


@pytest.mark.slow
def test_replay_of_a_step_before_new_code_warns(user: User, copy: RunDir) -> None:
    note_event(copy, NEW_CODE, files=["model.py"], step=7)
    answer = user.stk("replay", copy.path, "--step", 7)
    assert "before the run took new code (model.py, from step 8 on)" in answer.err


@pytest.mark.parametrize("step", [0, 10, 5000])
def test_a_step_that_the_run_does_not_have_is_refused(user: User, finished: RunDir, step: int) -> None:
    answer = user.stk("replay", finished.run_id, "--step", step)
    assert answer.code == 2
    assert answer.err == (
        f"error: {finished.run_id} has no step {step}: it finished after step 9. Steps count from 1\n"
    )


@pytest.mark.slow
def test_replay_that_differs_from_its_record_exits_with_1(user: User, copy: RunDir) -> None:
    lines = copy.step_records.read_text().splitlines()
    second = json.loads(lines[1])
    lines[1] = json.dumps({**second, "loss": second["loss"] + 1})
    copy.step_records.write_text("\n".join(lines) + "\n")
    answer = user.stk("replay", copy.path, "--step", 2)
    assert answer.code == 1
    assert "DIFFERENT from its record: the same samples, but another loss" in answer.out
    assert f"  record            loss {second['loss'] + 1!r}, samples {second['samples']}\n" in answer.out


@pytest.mark.slow
def test_a_step_that_failed_fails_again_and_shows_why(user: User) -> None:
    """The loss is no number at once, or soon: the rate is absurd."""
    absurd = (THREE, "name=absurd", "optimizer.lr=1e30")
    assert user.call("run", user.config, *absurd).code == 4
    run = user.run(*absurd)
    step = json.loads(run.failure.read_text())["step"] + 1
    found = user.stk("replay", run.run_id, "--step", step)
    assert found.code == 0, found.err
    assert f"this step fails in communication: the loss of step {step} is nan" in found.out
    assert "no record of this step" in found.out
    assert user.stk("replay", run.run_id, "--step", step + 1).code == 2


@pytest.mark.slow
def test_a_live_run_can_be_replayed(user: User) -> None:
    long = ("train.epochs=4000", "name=live", "checkpoint.every_steps=5")
    run = user.run(*long)
    process = user.start("run", user.config, *long)
    try:
        until(lambda: any(step >= 20 for step in run.checkpoint_steps()), process)
        found = document(user.stk("replay", run.run_id, "--step", 18, "--json"))
        assert process.poll() is None, "it ended too early for this to show anything"
        assert (found["verdict"], found["step"]) == ("exact", 18)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)


def test_replay_refuses_a_run_whose_code_is_too_old(user: User, copy: RunDir) -> None:
    (copy.code / "toolkit" / "analysis" / "replay.py").unlink()
    answer = user.stk("replay", copy.path, "--step", 1)
    assert (answer.code, "is older than `stk replay`" in answer.err) == (2, True)


def test_a_run_whose_code_is_gone_is_replayed_with_a_warning(user: User, copy: RunDir) -> None:
    shutil.rmtree(copy.code)
    answer = user.call("replay", copy.path, "--step", 1)
    assert (answer.code, answer.err.startswith(f"warning: {copy.code} is gone")) == (0, True), answer.err


@pytest.mark.slow
def test_replay_names_missing_data(user: User, copy: RunDir) -> None:
    text = copy.config.read_text()
    copy.config.write_text(text.replace("reviews.tsv", "nowhere.tsv"))
    answer = user.call("replay", copy.path, "--step", 1)
    assert answer.code == 2
    assert answer.err.count("error:") == 1
    assert "nowhere.tsv" in answer.err
    assert "Traceback" not in answer.err


# -- diff ----------------------------------------------------------------------------------------


def test_diff_calls_runs_of_different_names_and_numbers_of_processes_equal(
    user: User, finished: RunDir, copy: RunDir
) -> None:
    """That they are is shown where runs are trained."""
    copy.config.write_text(copy.config.read_text().replace("name: tiny", "name: two", 1))
    copy.attempts.write_text(copy.attempts.read_text().replace('"world_size": 1', '"world_size": 2'))
    answer = user.stk("diff", finished.path, copy.path)
    assert answer.code == 0
    assert "EQUAL in all 9 steps that both have: the same samples, the same loss exactly." in answer.out
    saves = {save.step for save in read_saves(finished)}
    assert f"Weights are equal, byte for byte, in {len(saves)} saves that both made." in answer.out
    assert "name: A 'tiny', B 'two'" in answer.out
    assert "trained on 2 processes on cpu" in answer.out
    assert "stk replay" not in answer.out
    assert document(user.stk("diff", finished.path, copy.path, "--json"))["equal"] is True


def test_diff_finds_the_first_different_step_its_cause_and_the_replay_commands(
    user: User, finished: RunDir
) -> None:
    """Another weight decay shows in the loss once the first update is made."""
    other = train(user, THREE, "name=decay", "optimizer.weight_decay=0.5")
    answer = user.stk("diff", finished.run_id, other.run_id)
    assert answer.code == 1
    assert "DIFFERENT from step 2 on, after 1 equal one: the same samples, but another loss." in answer.out
    assert "optimizer.weight_decay: A 0.01, B 0.5" in answer.out
    assert "None of that explains it" not in answer.out
    for run in (finished, other):
        assert f"  stk replay {run.run_id} --step 2\n" in answer.out
    found = document(user.stk("diff", finished.run_id, other.run_id, "--json"))
    assert (found["equal"], found["first"]["step"], found["first"]["what"]) == (False, 2, "loss")
    assert found["weights"] == 3


def test_diff_names_the_samples_if_two_runs_read_others_from_the_first_step(
    user: User, finished: RunDir, copy: RunDir
) -> None:
    """As two runs of different seeds do."""
    records = copy.step_records.read_text()
    copy.step_records.write_text(re.sub(r'"samples": "[0-9a-f]{8}"', '"samples": "01234567"', records))
    answer = user.stk("diff", finished.path, copy.path)
    assert answer.code == 1
    assert "DIFFERENT from step 1 on, the very first: they read other samples." in answer.out
    assert re.search(r"^  samples       A [0-9a-f]{8}   B [0-9a-f]{8}$", answer.out, re.MULTILINE)


def test_difference_without_a_known_cause_says_so(user: User, finished: RunDir, copy: RunDir) -> None:
    lines = [json.loads(line) for line in copy.step_records.read_text().splitlines()]
    for line in lines:
        if line["step"] == 5 and "loss" in line:
            line["loss"] *= 1 + 1e-7
    copy.step_records.write_text("".join(json.dumps(line) + "\n" for line in lines))
    answer = user.stk("diff", finished.path, copy.path)
    assert answer.code == 1
    assert "DIFFERENT from step 5 on, after 4 equal ones: the same samples, but another loss." in answer.out
    assert "(apart by 1.0e-07 of it)" in answer.out
    assert "None of that explains it." in answer.out
