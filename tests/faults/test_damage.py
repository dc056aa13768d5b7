"""Files that are not what was written: found, named, and done without."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.story import (
    Run,
    Runs,
    assert_as_if_nothing_had_happened,
    flip_a_byte,
    preempt_at,
    remove,
    tear,
    truncate,
    zero_a_page,
)
from tests.tiers import first_quick
from toolkit.config import Experiment

FILES = ("model.safetensors", "training.safetensors", "progress.json", "MANIFEST.json")


@pytest.mark.parametrize("damage", first_quick([flip_a_byte, zero_a_page, truncate, remove]))
def test_damaged_newest_checkpoint(
    runs: Runs, experiment: Experiment, undisturbed: Run, damage: Callable[[Path], None]
) -> None:
    """Each of its files in turn, and after each the one before is used."""
    run = runs.run(experiment)
    for number, name in enumerate(FILES):
        newest = run.yields(1, preempt_at(3 + 3 * number))
        damage(run.folder.checkpoint(newest) / name)
    run.finish(2)
    rejected = run.events("checkpoint_rejected")
    assert [event["step"] for event in rejected] == [4, 7, 10, 13]
    assert all(name in event["reason"] for name, event in zip(FILES, rejected, strict=True))
    assert_as_if_nothing_had_happened(run, undisturbed)


def test_a_flipped_bit_anywhere_is_found(runs: Runs, experiment: Experiment, undisturbed: Run) -> None:
    """Headers, tensors, manifest: twenty places by chance, each put right again."""
    choice = random.Random(17)
    run = runs.run(experiment)
    newest = run.folder.checkpoint(run.yields(1, preempt_at(6)))
    from toolkit.checkpoint.store import verify
    from toolkit.errors import CheckpointError

    verify(newest)
    for _ in range(20):
        file = newest / choice.choice(FILES)
        whole = file.read_bytes()
        flip_a_byte(file, choice.randrange(len(whole)))
        # A flip inside the manifest's own remarks is no damage to what it describes.
        if file.name != "MANIFEST.json":
            with pytest.raises(CheckpointError, match=file.name):
                verify(newest)
        file.write_bytes(whole)
    verify(newest)
    run.finish(1)
    assert_as_if_nothing_had_happened(run, undisturbed)


def test_stale_and_empty_folders_are_no_checkpoints(
    runs: Runs, experiment: Experiment, undisturbed: Run
) -> None:
    run = runs.run(experiment)
    run.yields(1, preempt_at(6))
    run.folder.checkpoint(12).mkdir()
    stale = run.folder.checkpoints / ".step_00000014.tmp"
    stale.mkdir()
    (stale / "model.safetensors").write_bytes(b"half of it")
    run.finish(1)
    assert not stale.exists()
    assert [event["step"] for event in run.events("checkpoint_rejected")] == [12]
    assert_as_if_nothing_had_happened(run, undisturbed)


def test_when_all_are_bad_it_refuses_to_start_from_nothing(runs: Runs, experiment: Experiment) -> None:
    run = runs.run(experiment)
    run.yields(1, preempt_at(6))
    for step in run.folder.checkpoint_steps():
        flip_a_byte(run.folder.checkpoint(step) / "model.safetensors")
    (ended,) = run.start(1)
    assert ended.error.startswith("CheckpointError")
    assert "a start from scratch is refused" in ended.error
    assert not run.folder.result.exists()


def test_torn_lines_of_a_killed_writer(runs: Runs, experiment: Experiment, undisturbed: Run) -> None:
    run = runs.run(experiment)
    run.yields(2, preempt_at(9))
    for file in (run.folder.metrics, run.folder.events, run.folder.attempts, run.folder.step_records):
        tear(file)
    run.finish(2)
    assert_as_if_nothing_had_happened(run, undisturbed)
