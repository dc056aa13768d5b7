"""Guarantees of training: equal results on any number of processes and after any number of stops."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.tiers import first_quick
from tests.toolkit.support.ranks import in_ranks, run_ranks
from tests.toolkit.support.tiny import (
    SIZES,
    STEPS_PER_EPOCH,
    assert_equal_runs,
    contents,
    events,
    metrics_lines,
    of_tokens,
    tiny,
)
from tests.toolkit.support.tiny_training import Attempt, Lab, train_rank
from toolkit.config import Experiment
from toolkit.errors import DataError
from toolkit.files import read_json, read_json_lines
from toolkit.precheck.changes import change_warnings, data_warnings
from toolkit.run.events import FORCED, note_event
from toolkit.run.records.step_records import read_step_records
from toolkit.run.run_dir import RunDir

TOTAL_STEPS = 2 * STEPS_PER_EPOCH
#: With `fast` a process draws its dropout for all its logical ranks at once.
NO_DROPOUT = ("model.dropout=0", "model.embedding_dropout=0")


@pytest.fixture(scope="module")
def exact(lab: Lab) -> Experiment:
    return tiny(lab.folder, "train.reduction=exact")


@pytest.fixture(scope="module")
def undisturbed(lab: Lab, exact: Experiment) -> RunDir:
    """A run on one process without a stop, to which the others are compared."""
    return lab.train(exact, Attempt())


@pytest.fixture(scope="module")
def without_dropout(lab: Lab) -> RunDir:
    return lab.train(tiny(lab.folder, "train.reduction=exact", *NO_DROPOUT), Attempt())


def losses(run: RunDir) -> np.ndarray:
    return np.array([line["loss"] for line in metrics_lines(run)])


def weights(run: RunDir) -> dict[str, np.ndarray]:
    return dict(load_file(run.last / "model.safetensors"))


def test_undisturbed_run_learns_and_writes_metrics_result_and_best(undisturbed: RunDir) -> None:
    lines = metrics_lines(undisturbed)
    train = [line for line in lines if line["split"] == "train"]
    validation = [line for line in lines if line["split"] == "validation"]
    assert [line["step"] for line in train] == [3, 6, 8, 11, 14, 16]
    assert [line["step"] for line in validation] == [4, 8, 12, 16]
    assert [line["split"] for line in lines].count("test") == 1
    # The loss of one line has few samples and varies: the lowest of several is compared.
    assert min(line["loss"] for line in train[3:]) < 0.8 * train[0]["loss"]
    assert train[-1].keys() == {"step", "epoch", "split", "loss", "accuracy", "lr", "count"}
    result = read_json(undisturbed.result)
    assert (result["state"], result["attempts"]) == ("finished", 1)
    assert (result["step"], result["epoch"]) == (TOTAL_STEPS, 2.0)
    assert result["metrics"].keys() == {"train", "validation", "test"}
    best = min(validation, key=lambda line: line["loss"])
    assert (result["best"]["step"], result["best"]["value"]) == (best["step"], best["loss"])
    assert undisturbed.best.resolve() == undisturbed.checkpoint(best["step"])
    # The scores at the end are those of the best weights, not of the last.
    assert result["metrics"]["validation"]["loss"] == best["loss"]


def test_training_scores_are_means_over_all_samples_of_the_last_epoch(undisturbed: RunDir) -> None:
    lines = [line for line in metrics_lines(undisturbed) if line["split"] == "train"]
    last = [line for line in lines if line["epoch"] > 1]
    assert sum(line["count"] for line in last) == SIZES["train"]
    for name in ("loss", "accuracy"):
        mean = sum(line[name] * line["count"] for line in last) / SIZES["train"]
        assert read_json(undisturbed.result)["metrics"]["train"][name] == pytest.approx(mean)


def test_three_processes_are_equal_within_rounding_and_log_a_warning(
    lab: Lab, exact: Experiment, undisturbed: RunDir
) -> None:
    run = lab.train(exact, Attempt(size=3))
    np.testing.assert_allclose(losses(run), losses(undisturbed), rtol=1e-4)
    for name, expected in weights(undisturbed).items():
        np.testing.assert_allclose(weights(run)[name], expected, rtol=1e-3, atol=1e-4)
    logs = [file.read_text() for file in run.logs.glob("*.log")]
    assert all("not a power of two" in text for text in logs)
    assert len(logs) == 3


@pytest.mark.parametrize("size", first_quick([3, 1]))
def test_fast_reduction_is_equal_within_rounding(lab: Lab, without_dropout: RunDir, size: int) -> None:
    run = lab.train(tiny(lab.folder, "train.reduction=fast", *NO_DROPOUT), Attempt(size=size))
    np.testing.assert_allclose(losses(run), losses(without_dropout), rtol=1e-4)
    assert [line["step"] for line in metrics_lines(run)] == [
        line["step"] for line in metrics_lines(without_dropout)
    ]


def test_run_of_steps_ends_within_an_epoch_and_resumes_equal(lab: Lab) -> None:
    settings = ("train.epochs=null", "train.steps=13", "train.eval_steps=5", "train.reduction=exact")
    named = ("optimizer.kind=radam", "lr_scheduler.kind=cosine_with_restarts")
    experiment = tiny(lab.folder, *settings, *named)
    undisturbed = lab.train(experiment, Attempt())
    lines = metrics_lines(undisturbed)
    assert [line["step"] for line in lines if line["split"] == "validation"] == [5, 10, 13]
    assert [line["step"] for line in lines if line["split"] == "train"][-1] == 13
    assert_equal_runs(lab.train(experiment, Attempt(stop_after=6), Attempt(size=2)), undisturbed)


def test_more_processes_than_logical_ranks_split_each_step_further(lab: Lab) -> None:
    """One identity, and one result but for rounding; equal bytes again where the parts are as many."""
    experiment = tiny(lab.folder, "train.logical_ranks=2", "train.reduction=exact", *NO_DROPOUT)
    alone, three = (lab.train(experiment, Attempt(size=size)) for size in (1, 3))
    assert three.run_id == alone.run_id
    np.testing.assert_allclose(losses(three), losses(alone), rtol=1e-4)
    four = lab.train(experiment, Attempt(size=4, stop_after=5), Attempt(size=4))
    parts = tiny(lab.folder, "train.logical_ranks=4", "train.reduction=exact", *NO_DROPOUT)
    assert weights(four).keys() == weights(alone).keys()
    assert all(
        np.array_equal(value, weights(four)[name])
        for name, value in weights(lab.train(parts, Attempt())).items()
    )
    np.testing.assert_allclose(
        losses(lab.train(experiment, Attempt(size=4, stop_after=5), Attempt())), losses(alone), rtol=1e-4
    )


@pytest.mark.slow
def test_compiled_model_has_equal_losses_within_rounding(lab: Lab) -> None:
    """Compiling takes most of the time: one kernel, and no batch of another size."""
    steps = ("train.epochs=null", "train.steps=4", "train.eval_steps=4", "evaluation.test=false")
    small = (*steps, "model.kernels=[2]", "train.deterministic=false", "train.reduction=fast", *NO_DROPOUT)
    run, plain = (
        lab.train(tiny(lab.folder, f"train.compile={word}", *small), Attempt()) for word in ("on", "off")
    )
    np.testing.assert_allclose(losses(run), losses(plain), rtol=1e-3)
    assert weights(run).keys() == weights(plain).keys()


@pytest.mark.parametrize("size", first_quick([1, 3]))
def test_resumed_run_with_fast_reduction_equals_the_undisturbed_one(lab: Lab, size: int) -> None:
    """Dropout included: what a pass draws comes from the seed, the step and the pass."""
    experiment = tiny(lab.folder, "train.reduction=fast", "train.accumulation=2")
    stopped = lab.train(
        experiment, Attempt(size=size, stop_after=5), Attempt(size=size, stop_after=6), Attempt(size=size)
    )
    assert_equal_runs(stopped, lab.train(experiment, Attempt(size=size)))


@pytest.mark.parametrize(
    "attempts",
    first_quick(
        [
            pytest.param(
                [
                    Attempt(size=2, stop_after=3, ranks=[0, 1]),
                    Attempt(size=4, stop_after=2, ranks=[3]),
                    Attempt(size=1, stop_after=5),
                    Attempt(size=8, stop_after=1, ranks=[0, 5]),
                    Attempt(size=2),
                ],
                id="on 2, 4, 1, 8 and 2 processes",
            ),
            pytest.param([Attempt(stop_after=1), Attempt()], id="in the first step"),
            pytest.param([Attempt(stop_after=TOTAL_STEPS - 1), Attempt()], id="before the last step"),
            # It evaluates there, too.
            pytest.param([Attempt(stop_after=STEPS_PER_EPOCH), Attempt()], id="at the end of an epoch"),
        ],
        quick=2,
    ),
)
def test_stopped_and_resumed_run_equals_the_undisturbed_one(
    lab: Lab, exact: Experiment, undisturbed: RunDir, attempts: list[Attempt]
) -> None:
    run = lab.train(exact, *attempts)
    assert_equal_runs(run, undisturbed)
    assert list(read_step_records(run)) == list(read_step_records(undisturbed))
    assert read_json(run.result)["attempts"] == len(attempts)
    starts = [line for line in read_json_lines(run.attempts) if "time_start" in line]
    ends = [line for line in read_json_lines(run.attempts) if "time_end" in line]
    assert [line["first_step"] for line in starts] == [0, *(line["last_step"] for line in ends[:-1])]
    assert [line["resumed"] for line in starts] == [False] + [True] * (len(attempts) - 1)
    assert [line["world_size"] for line in starts] == [attempt.size for attempt in attempts]


def test_surviving_rank_records_a_lost_peer(lab: Lab, exact: Experiment) -> None:
    run = lab.start(exact)
    ended = run_ranks(2, train_rank, run.path, Attempt(size=2, stop_after=3, ranks=[1], kill=True))
    assert ended[0].error
    failure = read_json(run.failure)
    assert (failure["class"], failure["rank"]) == ("peer_lost", 0)
    assert (failure["step"], failure["phase"]) == (2, "communication")


def test_accumulation_equals_a_multiple_of_logical_ranks(lab: Lab) -> None:
    """The micro-batches and their tree are the same; only their assignment to processes differs."""
    eight = lab.train(tiny(lab.folder, "train.logical_ranks=8"), Attempt(size=2))
    halves = lab.train(tiny(lab.folder, "train.logical_ranks=4", "train.accumulation=2"), Attempt(size=2))
    quarters = lab.train(tiny(lab.folder, "train.logical_ranks=2", "train.accumulation=4"), Attempt(size=1))
    assert contents(halves)["checkpoint"] == contents(eight)["checkpoint"]
    assert contents(quarters)["checkpoint"] == contents(eight)["checkpoint"]
    assert metrics_lines(halves) == metrics_lines(quarters) == metrics_lines(eight)


@pytest.mark.parametrize(
    "overrides",
    first_quick(
        [
            pytest.param(("train.precision=bf16",), id="bf16"),
            pytest.param(
                ("lr_scheduler.kind=cosine", "train.clip_norm=0.5", "train.bucket_batches=50"),
                id="cosine, clipping and an epoch in one bucket",
            ),
            pytest.param(
                (
                    *("lr_scheduler.kind=step", "optimizer.kind=sgd", "optimizer.momentum=0.9"),
                    *of_tokens(60, 4),
                ),
                id="step, sgd and steps of tokens",
            ),
            pytest.param(
                (*of_tokens(60, None), "lr_scheduler.kind=constant", "optimizer.kind=adam"),
                id="constant, adam and steps of tokens without buckets",
            ),
            pytest.param(
                (
                    *("checkpoint.every_steps=3", "train.bucket_batches=1"),
                    *("train.logical_ranks=4", "train.accumulation=2"),
                ),
                id="saves between evaluations, and accumulation",
            ),
            # Of its evaluations, after every second step, the fourth is the last.
            pytest.param(
                ("optimizer.lr=1e-30", "evaluation.patience=3", "train.eval_per_epoch=4"), id="patience"
            ),
        ],
        quick=2,
    ),
)
def test_every_setting_resumes_on_another_number_of_processes(lab: Lab, overrides: tuple[str, ...]) -> None:
    experiment = tiny(lab.folder, "train.reduction=exact", *overrides)
    whole = lab.train(experiment, Attempt())
    assert np.isfinite(losses(whole)).all()
    assert_equal_runs(lab.train(experiment, Attempt(size=2, stop_after=6, ranks=[1]), Attempt(size=1)), whole)


def test_recorded_learning_rate_follows_the_schedule(undisturbed: RunDir) -> None:
    """Warm-up over 0.2 * 16 = 3 steps to 0.05, then a line to 0 after step 16."""
    rates = {line["step"]: line["lr"] for line in metrics_lines(undisturbed) if line["split"] == "train"}
    assert rates[3] == pytest.approx(0.05)
    assert rates[8] == pytest.approx(0.05 * (1 - 4 / 13))
    assert rates[16] == pytest.approx(0.05 * (1 - 12 / 13))


@pytest.mark.parametrize("size", [1, 2])
def test_best_of_equal_scores_has_the_lowest_loss(lab: Lab, size: int) -> None:
    experiment = tiny(lab.folder, "evaluation.metric=accuracy:max", "train.epochs=4")
    run = lab.train(experiment, Attempt(size=size, stop_after=20, ranks=[size - 1]), Attempt())
    lines = [line for line in metrics_lines(run) if line["split"] == "validation"]
    highest = max(line["accuracy"] for line in lines)
    ties = [line for line in lines if line["accuracy"] == highest]
    expected = min(ties, key=lambda line: line["loss"])["step"]
    assert expected > ties[0]["step"], "the lowest loss has to come later for this to say anything"
    assert read_json(run.result)["best"]["step"] == expected
    assert run.best.resolve() == run.checkpoint(expected)


def test_early_stopping_ends_the_run_after_its_patience(lab: Lab) -> None:
    """Without learning no evaluation is strictly better than the first, so the fourth is one too many."""
    experiment = tiny(lab.folder, "optimizer.lr=1e-30", "evaluation.patience=2", "train.epochs=50")
    run = lab.train(experiment, Attempt())
    result = read_json(run.result)
    assert (result["step"], result["best"]["step"], result["epoch"]) == (12, 4, 1.5)


def test_early_stop_is_kept_if_the_run_is_killed_before_its_result(lab: Lab) -> None:
    experiment = tiny(lab.folder, "optimizer.lr=1e-30", "evaluation.patience=2", "train.epochs=50")
    run = lab.start(experiment)
    in_ranks(1, train_rank, run.path, Attempt())
    run.result.unlink()
    in_ranks(1, train_rank, run.path, Attempt(size=1))
    assert_equal_runs(run, lab.train(experiment, Attempt()))


def test_run_without_test_evaluation_writes_no_test_scores(lab: Lab) -> None:
    run = lab.train(tiny(lab.folder, "evaluation.test=false"), Attempt(size=2))
    assert read_json(run.result)["metrics"].keys() == {"train", "validation"}
    assert {line["split"] for line in metrics_lines(run)} == {"train", "validation"}
    assert [file.name for file in run.artifacts.glob("test*")] == []


def test_starting_a_finished_run_again_changes_no_file(undisturbed: RunDir) -> None:
    before = {path: path.stat().st_mtime_ns for path in undisturbed.path.rglob("*")}
    assert in_ranks(2, train_rank, undisturbed.path, Attempt(size=2)) == ["finished"] * 2
    assert {path: path.stat().st_mtime_ns for path in undisturbed.path.rglob("*")} == before


@pytest.mark.slow
def test_more_processes_than_samples_in_a_step_still_train(lab: Lab) -> None:
    """Two samples a step: most of the eight micro-batches are empty in every step."""
    small = ("train.batch_size=2", "train.epochs=1", *NO_DROPOUT)
    experiment = tiny(lab.folder, "train.reduction=exact", *small)
    assert_equal_runs(lab.train(experiment, Attempt(size=4)), lab.train(experiment, Attempt()))
    fast = lab.train(tiny(lab.folder, "train.reduction=fast", *small), Attempt(size=3))
    np.testing.assert_allclose(losses(fast), losses(lab.train(experiment, Attempt())), rtol=1e-3)


def test_changed_data_under_the_same_run_is_refused(lab: Lab, tmp_path: Path) -> None:
    """The checkpoint records the fingerprint of its data."""
    experiment = tiny(tmp_path / "data", "train.epochs=1")
    run = lab.start(experiment)
    in_ranks(1, train_rank, run.path, Attempt(stop_after=2))
    assert change_warnings(run, experiment, new_code=False) == []
    with open(tmp_path / "data" / "train.tsv", "a") as table:
        table.write("one more film\tgood\n")
    changed = rf"since its step 2 \(other contents: {tmp_path}/data/train.tsv\), so it will not continue"
    with pytest.raises(DataError, match=changed):
        change_warnings(run, experiment, new_code=False)
    (ended,) = run_ranks(1, train_rank, run.path, Attempt())
    assert ended.error.startswith("CheckpointError")
    assert "saved for other data" in events(run, "checkpoint_rejected")[0]["reason"]
    # A later change is refused, too.
    note_event(run, FORCED, steps=[2])
    assert change_warnings(run, experiment, new_code=False) == []
    shutil.copytree(run.checkpoint(2), run.checkpoint(3))
    with pytest.raises(DataError, match="have changed since its step 3"):
        change_warnings(run, experiment, new_code=False)
    # The code of another version decides for itself.
    (run.code / "toolkit").mkdir(parents=True, exist_ok=True)
    (run.code / "toolkit" / "files.py").write_text("# of another version")
    assert data_warnings(run, experiment) == []
    with pytest.raises(DataError, match="--new-code --force"):
        data_warnings(run, experiment, new_code=True)
    run.result.write_text("{}")
    (found,) = data_warnings(run, experiment, new_code=True)
    assert "this version of slurm-toolkit reads them in another way" in found
