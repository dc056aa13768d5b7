"""Any step of a run can be computed anew from its folder, and equals its record."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from stk_toy.texts.task import TextsTask

from tests.toolkit.support.ranks import in_ranks
from tests.toolkit.support.tiny import STEPS_PER_EPOCH, tiny
from tests.toolkit.support.tiny_training import Attempt, Lab, train_rank
from toolkit.analysis.replay import judge, replay
from toolkit.config import Experiment
from toolkit.errors import RunFailed, UserError
from toolkit.files import write_json
from toolkit.run.records.step_records import StepRecord, read_step_records
from toolkit.run.run_dir import RunDir

pytestmark = pytest.mark.usefixtures("threads_restored")

TOTAL_STEPS = 2 * STEPS_PER_EPOCH


@pytest.fixture(scope="module")
def exact(lab: Lab) -> Experiment:
    return tiny(lab.folder, "train.reduction=exact", "checkpoint.every_steps=3")


@pytest.fixture(scope="module")
def finished(lab: Lab, exact: Experiment) -> RunDir:
    """Stopped once, and on other numbers of processes than the replay."""
    return lab.train(exact, Attempt(size=2, stop_after=6, ranks=[1]), Attempt(size=4))


@pytest.fixture
def copy(finished: RunDir, tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / finished.run_id)
    shutil.copytree(finished.path, run.path, symlinks=True)
    return run


def do(run: RunDir, step: int) -> dict[str, Any]:
    return replay(run, step, lambda done, total: None)


@pytest.mark.parametrize("step", range(1, TOTAL_STEPS + 1))
def test_replay_of_every_step_equals_its_record(finished: RunDir, step: int) -> None:
    found = do(finished, step)
    record = list(read_step_records(finished))[step - 1]
    assert (found["verdict"], found["loss"], found["samples"]) == ("exact", record.loss, record.samples)
    before = max((saved for saved in finished.checkpoint_steps() if saved < step), default=0)
    assert (found["checkpoint"], found["recomputed"]) == (before or None, step - 1 - before)


def test_replay_reports_the_learning_rate_and_the_micro_batches_of_a_step(finished: RunDir) -> None:
    found = do(finished, TOTAL_STEPS)
    assert found["lr"] == pytest.approx(0.05 / 13)
    parts = found["micro_batches"]
    assert [part["micro_batch"] for part in parts] == list(range(8))
    # The last step of an epoch has five samples for eight micro-batches.
    assert sorted(len(part["samples"]) for part in parts) == [0] * 3 + [1] * 5
    assert sum(part["loss"] or 0.0 for part in parts) == pytest.approx(found["loss"])
    sample = next(part["samples"][0] for part in parts if part["samples"])
    assert sample["file"] == "train.tsv" or sample["file"].endswith("/train.tsv")
    lines = Path(finished.config.parents[2] / "train.tsv").read_text().splitlines()
    assert lines[sample["line"] - 1] == f"{sample['text']}\t{sample['label']}"


def test_damaged_checkpoints_are_skipped(copy: RunDir) -> None:
    last, one_before = copy.checkpoint_steps()[-2:][::-1]
    raw = bytearray((copy.checkpoint(one_before) / "model.safetensors").read_bytes())
    raw[-3] ^= 1
    (copy.checkpoint(one_before) / "model.safetensors").write_bytes(raw)
    shutil.rmtree(copy.checkpoint(last))
    found = do(copy, TOTAL_STEPS)
    assert found["verdict"] == "exact"
    assert (found["checkpoint"] or 0) < one_before


def test_replay_without_checkpoints_starts_from_step_0(copy: RunDir) -> None:
    shutil.rmtree(copy.checkpoints)
    told: list[tuple[int, int]] = []
    found = replay(copy, 12, lambda done, total: told.append((done, total)))
    assert (found["verdict"], found["checkpoint"], found["recomputed"]) == ("exact", None, 11)
    assert told == [(done, 12) for done in range(12)]


def test_the_next_step_of_a_stopped_run_can_be_replayed(lab: Lab, exact: Experiment) -> None:
    run = lab.start(exact)
    in_ranks(1, train_rank, run.path, Attempt(stop_after=5))
    assert do(run, 5)["verdict"] == "exact"
    assert do(run, 6)["verdict"] == "no_receipt"
    with pytest.raises(UserError, match="has no step 7: it has done 5 steps so far"):
        do(run, 7)


@pytest.mark.parametrize("reduction, passes", [("exact", [4, 4, 4, 4]), ("fast", [8, 8])])
def test_replay_makes_the_same_forward_passes_as_the_reduction(
    lab: Lab, reduction: str, passes: list[int]
) -> None:
    experiment = tiny(
        lab.folder,
        f"train.reduction={reduction}",
        "train.batch_size=16",
        "train.logical_ranks=2",
        "train.accumulation=2",
        "train.epochs=1",
    )
    found = do(lab.train(experiment, Attempt()), 1)
    assert [len(part["samples"]) for part in found["micro_batches"]] == passes
    assert found["verdict"] == "exact"


@pytest.mark.slow
def test_replay_of_fast_reduction_makes_one_pass_for_each_process(lab: Lab) -> None:
    """Dropout is drawn separately in each pass."""
    run = lab.train(tiny(lab.folder, "train.reduction=fast"), Attempt(size=2, stop_after=5), Attempt(size=3))
    for step, size in [(5, 2), (6, 3)]:
        found = do(run, step)
        assert len(found["micro_batches"]) == size
        assert found["verdict"] in ("exact", "rounding")


def test_an_exception_in_a_step_is_reported_with_its_samples(copy: RunDir) -> None:
    collate, calls = TextsTask.collate, 0

    def fail(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise ValueError("this row cannot be parsed")
        return collate(*arguments)

    saved = copy.checkpoint_steps()[0]
    copy.step_records.unlink()
    with patch.object(TextsTask, "collate", fail):
        found = do(copy, saved + 1)
        calls = 0
        shutil.rmtree(copy.checkpoints)
        with pytest.raises(
            RunFailed,
            match=rf"step 1, .* to step 3, fails: this .* parsed\. stk replay {copy.run_id} --step 1 ",
        ):
            do(copy, 3)
    parts, error = found["micro_batches"], found["error"]
    assert error["message"] == "ValueError: this row cannot be parsed"
    assert error["phase"] == "data"
    assert "Traceback" in error["traceback"]
    assert found["loss"] is None
    assert found["verdict"] == "no_receipt"
    computed = [part["micro_batch"] for part in parts if part["loss"] is not None]
    at_work = next(p for p in parts if error["samples"] == [sample["sample"] for sample in p["samples"]])
    assert len(computed) <= 2
    assert at_work["loss"] is None


@pytest.mark.slow
def test_replay_leaves_out_quarantined_samples(lab: Lab) -> None:
    run = lab.start(tiny(lab.folder, "train.reduction=exact", "train.quarantine=3"))
    sample = 17
    write_json(run.quarantine, {"samples": [{"id": sample, "step": 9, "reason": "known"}]})
    in_ranks(1, train_rank, run.path, Attempt())
    left_out = {step: do(run, step) for step in range(1, TOTAL_STEPS + 1)}
    assert {found["verdict"] for found in left_out.values()} == {"exact"}
    (step,) = (step for step, found in left_out.items() if found["left_out"])
    assert left_out[step]["left_out"] == [sample]
    assert step > STEPS_PER_EPOCH, "in the first epoch it was still read"


@pytest.mark.parametrize(
    "record, loss, verdict",
    [
        (None, 2.5, "no_receipt"),
        (StepRecord(step=1, samples="aa", loss=2.5), 2.5, "exact"),
        (StepRecord(step=1, samples="aa", loss=2.5 * (1 + 1e-6)), 2.5, "rounding"),
        (StepRecord(step=1, samples="aa", loss=2.6), 2.5, "other_loss"),
        (StepRecord(step=1, samples="bb", loss=2.5), 2.5, "other_samples"),
        (StepRecord(step=1, samples="aa", loss=2.5), None, "other_loss"),  # the step fails in replay
    ],
)
def test_the_verdict_compares_samples_and_loss_with_the_record(
    record: StepRecord | None, loss: float | None, verdict: str
) -> None:
    assert judge(record, "aa", loss) == verdict
