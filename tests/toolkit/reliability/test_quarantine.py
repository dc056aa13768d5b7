"""A sample that fails at the same step twice is left out, and nothing else changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from unittest.mock import Mock, patch

import numpy as np
import pytest
import torch
from stk_toy.texts.task import Batch, TextsTask

from tests.tiers import first_quick
from tests.toolkit.support.ranks import Ended, run_ranks
from tests.toolkit.support.tiny import SIZES, assert_equal_runs, events, tiny
from tests.toolkit.support.tiny_training import Attempt, Lab, counted_stop
from toolkit.config import Experiment
from toolkit.distributed.process_group import Group
from toolkit.errors import UserError
from toolkit.files import append_json_line, read_json, write_json
from toolkit.reliability.quarantine import LeftOut, Quarantine, read_quarantine
from toolkit.run.records.step_records import read_step_records
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.task import Loss, task_class
from toolkit.training import worker
from toolkit.training.assembly.build_training import build_training
from toolkit.training.loop import plan_of
from toolkit.training.output.progress_display import Display

ALONE = Group(World.single(), torch.device("cpu"))

EXACT = ("train.reduction=exact", "train.logical_ranks=2")

#: By sample: how it fails, and in which phase.
Poison = Mapping[int, str]


class Poisoned:
    """The task's functions, failing for certain samples of the training split."""

    def __init__(self, poison: Poison) -> None:
        self._poison = poison
        self._collate, self._loss = TextsTask.collate, TextsTask.loss
        self._kinds: list[str] = []

    def collate(self, task: TextsTask, split: str, indices: np.ndarray, device: torch.device) -> Batch:
        self._kinds = [] if split != "train" else [self._poison.get(int(i), "") for i in indices]
        if "data" in self._kinds:
            raise ValueError("this row cannot be parsed")
        return self._collate(task, split, indices, device)

    def loss(self, task: TextsTask, model: torch.nn.Module, batch: Batch) -> Loss:
        if "model" in self._kinds:
            raise IndexError("token 99 of 50")
        loss = self._loss(task, model, batch)
        factor = float("nan") if "nan" in self._kinds or "all" in self._poison.values() else 1.0
        return Loss(total=loss.total * factor, count=loss.count, tokens=loss.tokens, sums=loss.sums)


def poisoned_rank(world: World, path: Path, poison: Poison, attempt: Attempt) -> str:
    """Train as one rank on data of which some samples are poison."""
    poisoned = Poisoned(poison)
    with (
        patch("toolkit.training.attempt.finalize._report"),
        patch.object(TextsTask, "collate", lambda *a: poisoned.collate(*a)),
        patch.object(TextsTask, "loss", lambda *a: poisoned.loss(*a)),
        counted_stop(attempt, world.rank) as stop,
    ):
        return worker.run_attempt(RunDir(path), world, stop).value


def start(run: RunDir, poison: Poison, size: int = 1, attempt: Attempt | None = None) -> list[Ended]:
    """One attempt of a run on poisoned data."""
    return run_ranks(size, poisoned_rank, run.path, poison, attempt or Attempt(size=size))


def finish(run: RunDir, poison: Poison, size: int = 1) -> None:
    ended = start(run, poison, size)
    assert [end.value for end in ended] == ["finished"] * size, [end.error for end in ended]


def quarantined(run: RunDir) -> list[int]:
    return [each.id for each in read_quarantine(run)]


@pytest.fixture(scope="module")
def experiment(lab: Lab) -> Experiment:
    """Two micro-batches of four samples in each step."""
    return tiny(lab.folder, *EXACT, "train.quarantine=2")


def samples_of(experiment: Experiment, step: int) -> list[int]:
    """What a step (counted from 1) of the first epoch reads."""
    task_class(experiment).prepare(experiment)
    task = task_class(experiment)(experiment)
    training = build_training(RunDir(Path("nowhere")), experiment, task, ALONE, Display())
    return [int(sample) for sample in plan_of(training, 0).step(step - 1)]


@pytest.fixture(scope="module")
def batch(experiment: Experiment) -> list[int]:
    """The second micro-batch of step 6, after a save at step 4; of two ranks the second one carries it."""
    return samples_of(experiment, 6)[4:]


@pytest.fixture(scope="module")
def early(batch: list[int]) -> int:
    """One of its samples."""
    return batch[2]


# -- a whole run ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, size, reduction",
    first_quick(
        [("data", 1, "exact"), ("model", 2, "exact"), ("nan", 2, "exact"), ("model", 2, "fast")], quick=2
    ),
)
def test_a_poison_sample_is_quarantined_and_the_run_equals_one_without_it(
    lab: Lab, batch: list[int], early: int, kind: str, size: int, reduction: str
) -> None:
    experiment = tiny(
        lab.folder, f"train.reduction={reduction}", "train.logical_ranks=2", "train.quarantine=2"
    )
    run, golden = lab.start(experiment), lab.start(experiment)
    ended = start(run, {early: kind}, size)
    assert all(end.error for end in ended)
    failure = read_json(run.failure)
    assert failure["class"] == ("diverged" if kind == "nan" else "exception")
    assert (failure["step"], failure["samples"], failure["rank"]) == (5, batch, size - 1)
    assert quarantined(run) == []

    finish(run, {early: kind}, size)
    (entry,) = read_quarantine(run)
    assert (entry.id, entry.step) == (early, 6)
    (event,) = events(run, "quarantined")
    assert (event["id"], event["step"]) == (early, 6)
    assert "train.tsv:" in event["source"]
    assert f"sample {early} (" in "".join(file.read_text() for file in run.logs.glob("*rank_00000.log"))

    write_json(golden.quarantine, {"samples": [{"id": early, "step": 1, "reason": "known"}]})
    finish(golden, {early: kind}, 1 if reduction == "exact" else size)
    assert_equal_runs(run, golden)
    assert list(read_step_records(run)) == list(read_step_records(golden))


def test_the_option_does_not_change_a_run_without_poison(lab: Lab, experiment: Experiment) -> None:
    plain = tiny(lab.folder, *EXACT)
    assert_equal_runs(lab.train(experiment, Attempt()), lab.train(plain, Attempt()))


def test_a_resumed_run_leaves_out_its_quarantined_samples(
    lab: Lab, experiment: Experiment, early: int
) -> None:
    """The checkpoint may be older than the step at which the sample was found."""
    run, golden = lab.start(experiment), lab.start(experiment)
    start(run, {early: "data"})
    start(run, {early: "data"}, attempt=Attempt(stop_after=3, kill=True))
    assert quarantined(run) == [early]
    assert run.checkpoint_steps() == [4]
    finish(run, {early: "data"}, size=2)
    write_json(golden.quarantine, {"samples": [{"id": early, "step": 1, "reason": "known"}]})
    finish(golden, {early: "data"})
    assert_equal_runs(run, golden)


def test_a_failure_that_does_not_recur_quarantines_nothing(
    lab: Lab, experiment: Experiment, early: int
) -> None:
    run = lab.start(experiment)
    start(run, {early: "data"})
    finish(run, {})
    assert quarantined(run) == []
    assert events(run, "quarantined") == []
    assert_equal_runs(run, lab.train(experiment, Attempt()))


def test_without_the_option_the_run_fails_each_time(lab: Lab, early: int) -> None:
    run = lab.start(tiny(lab.folder, *EXACT))
    for _ in range(2):
        (ended,) = start(run, {early: "data"})
        assert "cannot be parsed" in ended.error
    assert not run.quarantine.exists()


def test_no_more_samples_than_the_limit_are_quarantined(lab: Lab, early: int, experiment: Experiment) -> None:
    capped = tiny(lab.folder, *EXACT, "train.quarantine=1")
    poison = {early: "data", samples_of(experiment, 7)[0]: "data"}
    run = lab.start(capped)
    errors = [start(run, poison)[0].error for _ in range(4)]
    assert all("cannot be parsed" in error for error in errors)
    assert quarantined(run) == [early]
    log = "".join(file.read_text() for file in run.logs.glob("*.log"))
    assert "train.quarantine allows no more than 1 samples" in log


def test_a_model_that_fails_with_every_sample_quarantines_none(lab: Lab, experiment: Experiment) -> None:
    run = lab.start(experiment)
    for _ in range(2):
        (ended,) = start(run, {-1: "all"})
        assert "TrainingDiverged" in ended.error
    assert quarantined(run) == []
    assert "fails with any sample" in "".join(file.read_text() for file in run.logs.glob("*.log"))


@pytest.mark.parametrize("size", [1, 3])
def test_a_step_with_only_quarantined_samples_has_loss_zero(lab: Lab, size: int) -> None:
    """One sample a step: the step whose only sample is left out neither learns nor divides by zero."""
    experiment = tiny(
        lab.folder,
        "train.reduction=fast",
        "train.quarantine=2",
        *("train.batch_size=1", "train.epochs=1", "train.log_per_epoch=61", "train.eval_per_epoch=1"),
    )
    poison = {samples_of(experiment, 1)[0]: "nan", samples_of(experiment, 61)[0]: "data"}
    run = lab.start(experiment)
    entries = [{"id": id, "step": 1, "reason": "known"} for id in poison]
    write_json(run.quarantine, {"samples": entries})
    finish(run, poison, size)
    found = list(read_step_records(run))
    assert [record.loss for record in found if record.step in (1, 61)] == [0.0, 0.0]
    assert all(record.loss > 0 for record in found if record.step not in (1, 61))
    assert read_json(run.result)["step"] == SIZES["train"] == found[-1].step


# -- the parts -----------------------------------------------------------------------------------


def test_a_quarantined_sample_is_left_out_from_its_step_on() -> None:
    """A repeated step must read the same samples as the first time."""
    quarantine = Quarantine(limit=2, left_out=[LeftOut(id=7, step=3, reason="")])
    indices = np.array([9, 7, 8])
    assert quarantine.without(indices, 1).tolist() == [9, 7, 8]
    assert quarantine.without(indices, 2).tolist() == [9, 8]
    assert quarantine.without(indices, 50).tolist() == [9, 8]


def test_suspects_come_from_failures_that_a_sample_may_cause(run: RunDir) -> None:
    for step, name, samples in [
        (5, "exception", [1, 2]),
        (5, "peer_lost", [3]),
        (5, "diverged", [2, 4]),
        (9, "killed", [5]),
        (11, "exception", []),
    ]:
        append_json_line(run.events, {"event": "failure", "class": name, "step": step, "samples": samples})
    append_json_line(run.events, {"event": "save", "step": 5})
    assert Quarantine.of(run, 1).suspects == {5: frozenset({1, 2, 4})}
    assert Quarantine.of(run, 0) == Quarantine()


@pytest.mark.parametrize(
    "text", ["[1]", '{"samples": [{"id": "seven", "step": 1}]}', '{"samples": [{"id": 7}]}', "{"]
)
def test_a_malformed_quarantine_file_is_refused(run: RunDir, text: str) -> None:
    run.quarantine.write_text(text)
    with pytest.raises(UserError, match=r"quarantine.json cannot be understood .*; expected \{\"samples\""):
        Quarantine.of(run, 1)


def test_a_memory_error_during_examination_is_raised(tmp_path: Path) -> None:
    quarantine = Quarantine(limit=1, suspects={0: frozenset({1})})
    attempt = Mock(side_effect=MemoryError)
    with pytest.raises(MemoryError):
        quarantine.examine(RunDir(tmp_path), ALONE, object(), 0, np.arange(9), attempt)


def test_a_sample_is_left_out_even_if_the_quarantine_cannot_be_written(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "gone")
    quarantine = Quarantine(limit=1, suspects={0: frozenset({1})})

    def attempt(sample: np.ndarray) -> float:
        return float("inf") if 1 in sample else 1.0

    quarantine.examine(run, ALONE, object(), 0, np.arange(9), attempt)
    assert quarantine.without(np.arange(3), 0).tolist() == [0, 2]
    assert quarantine.left_out[0].reason == "the loss is inf"


def test_the_error_of_a_nan_loss_names_micro_batch_and_samples(
    lab: Lab, batch: list[int], early: int
) -> None:
    """The rank that writes first does not matter."""
    run = lab.start(tiny(lab.folder, *EXACT))
    start(run, {early: "nan"}, size=2)
    failure = read_json(run.failure)
    named = ", ".join(map(str, batch))
    assert f"the loss of step 6 is nan, in micro-batch 1 of 2 (samples {named})" in failure["message"]
    assert [(event["rank"], event["samples"]) for event in events(run, "failure")] == [(1, batch)] * 2
