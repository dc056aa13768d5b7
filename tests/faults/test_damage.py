"""Damaged files are found, named and not used."""

from __future__ import annotations

from tests.faults.story import Run, assert_as_if_nothing_had_happened, flip_a_byte, preempt_at, tear

FILES = ("model.safetensors", "training.safetensors", "progress.json", "MANIFEST.json")


def test_damaged_newest_checkpoint_is_rejected_and_the_one_before_is_used(run: Run, undisturbed: Run) -> None:
    """Each of its files in turn, and after each the one before is used.

    tests/toolkit/checkpoint/test_damage.py has other kinds of damage.
    """
    for number, name in enumerate(FILES):
        newest = run.yields(1, preempt_at(3 + 3 * number))
        flip_a_byte(run.folder.checkpoint(newest) / name)
    run.finish(2)
    rejected = run.events("checkpoint_rejected")
    assert [event["step"] for event in rejected] == [4, 7, 10, 13]
    assert all(name in event["reason"] for name, event in zip(FILES, rejected, strict=True))
    assert_as_if_nothing_had_happened(run, undisturbed)


def test_run_resumes_over_torn_lines(run: Run, undisturbed: Run) -> None:
    run.yields(2, preempt_at(9))
    for file in (run.folder.metrics, run.folder.events, run.folder.attempts, run.folder.step_records):
        tear(file)
    run.finish(2)
    assert_as_if_nothing_had_happened(run, undisturbed)
