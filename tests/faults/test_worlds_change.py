"""A run whose number of processes changes from start to start."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.faults.story import (
    Run,
    Runs,
    assert_as_if_nothing_had_happened,
    kill,
    preempt_at,
    samples_by_epoch,
)
from tests.tiers import first_quick
from tests.toolkit.tiny import SIZES, STEPS_PER_EPOCH, metrics_lines, tiny
from toolkit.config import Experiment


@pytest.mark.slow
def test_two_four_and_one_are_the_same_to_the_byte(
    runs: Runs, experiment: Experiment, undisturbed: Run
) -> None:
    run = runs.run(experiment)
    run.yields(2, preempt_at(2, rank=1))
    run.breaks(4, kill(rank=2, step=7))
    run.yields(1, preempt_at(9))
    run.finish(4)
    assert_as_if_nothing_had_happened(run, undisturbed)


def test_three_read_the_same_data_and_round_otherwise(
    runs: Runs, experiment: Experiment, undisturbed: Run
) -> None:
    """And say so."""
    run = runs.run(experiment)
    run.yields(4, preempt_at(3))
    assert "not a power of two" not in run.logs()
    run.finish(3)
    assert run.logs().count("not a power of two") == 3
    found, expected = metrics_lines(run.folder), metrics_lines(undisturbed.folder)
    assert [line["step"] for line in found] == [line["step"] for line in expected]
    np.testing.assert_allclose(
        [line["loss"] for line in found], [line["loss"] for line in expected], rtol=1e-4
    )
    weights = load_file(run.folder.last / "model.safetensors")
    for name, value in load_file(undisturbed.folder.last / "model.safetensors").items():
        np.testing.assert_allclose(weights[name], value, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("sizes", first_quick([pytest.param((1, 2)), pytest.param((4, 3))]))
def test_every_sample_is_trained_on_once_in_each_epoch(
    runs: Runs, experiment: Experiment, tmp_path: Path, sizes: tuple[int, int]
) -> None:
    """Stopped in one, killed in the other epoch; what was not saved is read again, and alike."""
    journals = [tmp_path / name for name in ("stopped", "killed", "finished")]
    run = runs.run(experiment)
    run.yields(sizes[0], preempt_at(3), journal=journals[0])
    run.start(sizes[1], kill(rank=sizes[1] - 1, step=STEPS_PER_EPOCH + 3), journal=journals[1])
    run.finish(sizes[0], journal=journals[2])
    assert samples_by_epoch(journals, STEPS_PER_EPOCH) == [list(range(SIZES["train"]))] * 2


@pytest.mark.slow
def test_one_sample_on_four_processes(runs: Runs, tmp_path: Path) -> None:
    """Seven of eight micro-batches are empty in every step."""
    experiment = tiny(tmp_path, "train.epochs=4", "train.reduction=exact", "data.labels=[good,bad]")
    (tmp_path / "train.tsv").write_text("text\tlabel\na fine film\tgood\n")
    run = runs.run(experiment)
    run.yields(4, preempt_at(1, rank=3))
    run.finish(2)
    assert_as_if_nothing_had_happened(run, runs.undisturbed(experiment))
