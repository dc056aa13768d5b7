"""Step records depend on the steps alone and survive any end of an attempt."""

from __future__ import annotations

import resource
import struct
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.toolkit.support.ranks import run_ranks
from tests.toolkit.support.tiny import STEPS_PER_EPOCH, tiny
from tests.toolkit.support.tiny_training import Attempt, Lab, train_rank
from toolkit.checkpoint.state import Progress
from toolkit.checkpoint.verification import verify
from toolkit.config import Experiment
from toolkit.files import read_json, write_json
from toolkit.run.records.step_records import (
    SaveRecord,
    StepRecords,
    extend,
    last_step,
    read_saves,
    read_step_records,
    samples_crc32,
)
from toolkit.run.run_dir import RunDir

Step = tuple[list[int], float]

losses = st.floats(allow_nan=False, allow_infinity=False)
steps = st.lists(st.tuples(st.lists(st.integers(0, 2**40), max_size=5), losses), min_size=1, max_size=12)


def do(step_records: StepRecords, progress: Progress, step: Step) -> None:
    progress.step += 1
    samples = np.array(step[0], dtype=np.int64)
    progress.chain = step_records.add(progress.step, progress.chain, samples, step[1])


def write(run: RunDir, done: Sequence[Step], first: Progress | None = None) -> Progress:
    """One attempt that does these steps and ends in order."""
    step_records, progress = StepRecords(run, is_main=True), first or Progress()
    step_records.start(progress.step)
    for step in done:
        do(step_records, progress, step)
    step_records.close()
    return progress


def save(run: RunDir, step: int, weights: int, chain: str = "c0ffee") -> None:
    """As much of a checkpoint as step records read."""
    run.checkpoint(step).mkdir(parents=True)
    manifest = {"chain": chain, "files": {"model.safetensors": {"crc32": weights}}}
    write_json(run.checkpoint(step) / "MANIFEST.json", manifest)


def record_lines(run: RunDir) -> list[str]:
    """The lines of the steps."""
    return [line for line in run.step_records.read_text().splitlines() if "samples" in line]


#: Attempts: how far back of what was reached it starts, how many steps it does, what it leaves torn.
attempts = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 12), st.sampled_from([b"", b"{", b'{"step": 99, "sam'])),
    max_size=4,
)


@given(steps, attempts)
@settings(max_examples=60, deadline=None)
def test_any_split_into_attempts_gives_the_same_file_and_chain(
    done: list[Step], disturbed: list[tuple[int, int, bytes]]
) -> None:
    """An attempt starts from any step that an earlier one came to, and may leave half a line."""
    chains = [""]
    for step, (samples, loss) in enumerate(done, 1):
        chains.append(extend(chains[-1], step, samples_crc32(np.array(samples, dtype=np.int64)), loss))
    with TemporaryDirectory() as folder:
        whole, split = RunDir(Path(folder) / "whole"), RunDir(Path(folder) / "split")
        whole.path.mkdir()
        split.path.mkdir()
        assert write(whole, done).chain == chains[-1]
        reached = 0
        for back, ahead, torn in [*disturbed, (0, len(done), b"")]:
            start = max(0, reached - back)
            reached = min(len(done), start + ahead)
            progress = write(split, done[start:reached], Progress(step=start, chain=chains[start]))
            assert progress.chain == chains[reached]
            with open(split.step_records, "ab") as stream:
                stream.write(torn)
        assert split.step_records.read_bytes() == whole.step_records.read_bytes()


@given(steps)
@settings(max_examples=60, deadline=None)
def test_step_records_are_read_back_bit_exact(done: list[Step]) -> None:
    with TemporaryDirectory() as folder:
        run = RunDir(Path(folder))
        write(run, done)
        found = list(read_step_records(run))
    assert [record.step for record in found] == list(range(1, len(done) + 1))
    packed = [struct.pack("<d", record.loss) for record in found]
    assert packed == [struct.pack("<d", loss) for _, loss in done]
    assert [record.samples for record in found] == [f"{samples_crc32(np.array(s)):08x}" for s, _ in done]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param([([1, 2], 0.5), ([3, 4], 0.25)], id="another loss"),
        pytest.param([([2, 1], 0.5), ([3, 4], 0.125)], id="another order within a step"),
        pytest.param([([1, 2], 0.5), ([3], 0.125)], id="a sample less"),
        pytest.param([([3, 4], 0.125), ([1, 2], 0.5)], id="other order of steps"),
        pytest.param([([1, 2], 0.5)], id="a step less"),
    ],
)
def test_chains_of_different_runs_differ(tmp_path: Path, other: list[Step]) -> None:
    chains = []
    for number, done in enumerate([[([1, 2], 0.5), ([3, 4], 0.125)], other]):
        run = RunDir(tmp_path / str(number))
        run.path.mkdir()
        chains.append(write(run, done).chain)
    assert chains[0] != chains[1]
    assert all(len(chain) == 32 for chain in chains)


def test_narrower_integers_of_the_same_samples_have_the_same_checksum() -> None:
    assert samples_crc32(np.array([1, 70000], dtype=np.int32)) == samples_crc32(np.array([1, 70000]))


def test_other_ranks_write_nothing(run: RunDir) -> None:
    step_records, progress = StepRecords(run, is_main=False), Progress()
    step_records.start(0)
    do(step_records, progress, ([1], 1.0))
    step_records.close()
    assert not run.step_records.exists()


def test_full_disk_delays_step_records_without_an_error(run: RunDir) -> None:
    step_records, progress = StepRecords(run, is_main=True), Progress()
    step_records.start(0)
    run.step_records.symlink_to("/dev/full")
    do(step_records, progress, ([1], 1.0))
    step_records.flush()
    do(step_records, progress, ([2], 2.0))
    run.step_records.unlink()
    step_records.flush()
    assert [record.loss for record in read_step_records(run)] == [1.0, 2.0]


def test_partial_write_leaves_no_partial_line(run: RunDir) -> None:
    step_records, progress = StepRecords(run, is_main=True), Progress()
    step_records.start(0)
    do(step_records, progress, ([1], 1.0))
    step_records.flush()
    before = run.step_records.read_bytes()
    for number in range(50):
        do(step_records, progress, ([number], 1.0))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, limits[1]))
    try:
        step_records.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert run.step_records.read_bytes() == before
    step_records.flush()
    assert [record.step for record in read_step_records(run)] == list(range(1, 52))


def test_save_is_recorded_once_and_outlives_its_checkpoint(run: RunDir) -> None:
    step_records, progress = StepRecords(run, is_main=True), Progress()
    step_records.start(0)
    for step in range(1, 4):
        do(step_records, progress, ([step], 1.0))
        step_records.flush()
        save(run, step, weights=step)
    step_records.close()
    (run.checkpoint(1) / "MANIFEST.json").unlink()
    run.checkpoint(1).rmdir()
    expected = [SaveRecord(step=step, chain="c0ffee", weights=f"{step:08x}") for step in range(1, 4)]
    assert list(read_saves(run)) == expected
    assert run.step_records.read_text().count("weights") == 3


def test_saves_are_recorded_again_after_a_resume_dropped_their_lines(run: RunDir) -> None:
    """The line of a save may come after later steps."""
    first = write(run, [([1], 1.0), ([2], 2.0)])
    save(run, 2, weights=7)
    step_records, progress = StepRecords(run, is_main=True), Progress(step=2, chain=first.chain)
    step_records.start(2)
    do(step_records, progress, ([3], 3.0))
    step_records.close()
    assert list(read_step_records(run))[-1].step == 3
    write(run, [([3], 3.5)], Progress(step=2, chain=first.chain))
    assert [record.loss for record in read_step_records(run)] == [1.0, 2.0, 3.5]
    assert [save.step for save in read_saves(run)] == [2]


def test_later_records_that_could_not_be_dropped_at_the_start_are_dropped_when_they_can(run: RunDir) -> None:
    """A folder in place of the file simulates a file system that is away."""
    first = write(run, [([1], 1.0), ([2], 2.0), ([3], 3.0)])
    kept = run.step_records.rename(run.path / "kept")
    run.step_records.mkdir()
    (run.step_records / "content").touch()
    again, progress = StepRecords(run, is_main=True), Progress(step=2, chain=first.chain)
    again.start(2)
    (run.step_records / "content").unlink()
    run.step_records.rmdir()
    kept.rename(run.step_records)
    do(again, progress, ([3], 3.5))
    again.close()
    assert [record.loss for record in read_step_records(run)] == [1.0, 2.0, 3.5]


def test_damaged_manifest_is_skipped(run: RunDir) -> None:
    run.checkpoint(5).mkdir(parents=True)
    (run.checkpoint(5) / "MANIFEST.json").write_text('{"files": []}')
    assert list(read_saves(run)) == []


def test_last_step_is_the_maximum_over_all_files(run: RunDir) -> None:
    assert last_step(run) == 0
    write(run, [([1], 1.0)])
    assert last_step(run) == 1
    run.checkpoint(3).mkdir(parents=True)
    assert last_step(run) == 3
    write_json(run.progress, {"step": 4})
    write_json(run.failure, {"step": None})
    assert last_step(run) == 4
    write_json(run.failure, {"step": 6})
    assert last_step(run) == 6
    # A crash of the machine may leave progress.json empty.
    run.progress.write_text("")
    assert last_step(run) == 6


# -- in training ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exact(lab: Lab) -> Experiment:
    return tiny(lab.folder, "train.reduction=exact")


@pytest.fixture(scope="module")
def undisturbed(lab: Lab, exact: Experiment) -> RunDir:
    return lab.train(exact, Attempt())


def test_a_run_has_a_record_of_every_step_and_a_chain_in_every_checkpoint(undisturbed: RunDir) -> None:
    found = list(read_step_records(undisturbed))
    assert [record.step for record in found] == list(range(1, 2 * STEPS_PER_EPOCH + 1))
    chain = ""
    chains = {}
    for record in found:
        chains[record.step] = chain = extend(chain, record.step, int(record.samples, 16), record.loss)
    saves = list(read_saves(undisturbed))
    # On a busy machine saves between the first and the last are left out.
    assert {4, 16} <= {save.step for save in saves} <= {4, 8, 12, 16}
    assert {save.step: save.chain for save in saves} == {save.step: chains[save.step] for save in saves}
    for step in undisturbed.checkpoint_steps():
        verify(undisturbed.checkpoint(step))
        stored = read_json(undisturbed.checkpoint(step) / "progress.json")["progress"]
        assert stored["chain"] == chains[step]


def test_records_of_a_killed_run_equal_those_of_an_undisturbed_one(
    lab: Lab, exact: Experiment, undisturbed: RunDir
) -> None:
    run = lab.start(exact)
    run_ranks(1, train_rank, run.path, Attempt(stop_after=7, kill=True))
    run.step_records.write_bytes(run.step_records.read_bytes() + b'{"step": 7, "samp')
    run_ranks(1, train_rank, run.path, Attempt())
    assert record_lines(run) == record_lines(undisturbed)
