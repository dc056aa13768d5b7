"""Ranks that meet through a file, without a connection to rank 0."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S
from tests.toolkit.distributed.rendezvous.starting import SHORT_S, start
from tests.toolkit.support.ranks import worlds
from toolkit.distributed.rendezvous import meet
from toolkit.errors import RendezvousError, UserError
from toolkit.run.run_dir import RunDir


def files(run: RunDir) -> list[str]:
    return [path.name for path in run.rendezvous("").parent.glob("*.filestore")]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0]])
def test_ranks_meet_through_a_file_that_close_removes(
    run: RunDir, threads: ThreadPoolExecutor, order: list[int]
) -> None:
    ranks = worlds(3, "7.0.1")
    joined = [each.result() for each in start(threads, run, [ranks[i] for i in order], PATIENCE_S, "file")]
    joined[0].store.set("greeting", "hello")
    assert all(each.store.get("greeting") == b"hello" for each in joined)
    assert files(run) == ["7.0.1.filestore"]
    for each in joined:
        each.close()
    assert files(run) == []


def test_the_file_of_a_killed_attempt_is_ignored_and_removed(
    run: RunDir, threads: ThreadPoolExecutor
) -> None:
    """A requeued job has another name for its attempt, so the file is another one."""
    left = [each.result() for each in start(threads, run, worlds(2, "7.0.0"), PATIENCE_S, "file")]
    again = [each.result() for each in start(threads, run, worlds(2, "7.0.1"), PATIENCE_S, "file")]
    assert files(run) == ["7.0.1.filestore"]
    assert len(left) == len(again) == 2


STRANGER = 65534


def plant(folder: Path, what: str) -> None:
    """What a stranger may put where the ranks will make their folder."""
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir(mode=0o700, parents=True)
    match what:
        case "a folder of another user":
            folder.mkdir(mode=0o700)
            os.chown(folder, STRANGER, STRANGER)
        case "a folder that others may write":
            folder.mkdir()
            folder.chmod(0o777)
        case "a folder that the group may enter":
            folder.mkdir()
            folder.chmod(0o750)
        case "a link to a folder":
            folder.symlink_to(elsewhere)
        case "a link to nothing":
            folder.symlink_to(folder.parent / "nowhere")
        case "a file":
            folder.touch(0o600)


@pytest.mark.parametrize(
    "what, kind",
    [
        pytest.param(
            "a folder of another user",
            "drwx------",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away"),
        ),
        ("a folder that others may write", "drwxrwxrwx"),
        ("a folder that the group may enter", "drwxr-x---"),
        ("a link to a folder", "lrwxrwxrwx"),
        ("a link to nothing", "lrwxrwxrwx"),
        ("a file", "-rw-------"),
    ],
)
def test_a_planted_or_unsafe_folder_is_refused_by_every_rank(
    run: RunDir, threads: ThreadPoolExecutor, what: str, kind: str
) -> None:
    ranks = worlds(2, "7.0.0")
    folder = run.rendezvous("7.0.0").with_name("7.0.0.filestore")
    plant(folder, what)
    before = sorted(os.listdir(folder.parent))
    owner = STRANGER if "another user" in what else os.geteuid()
    expected = (
        rf"7\.0\.0\.filestore must be a folder of this user .* found {kind} of user {owner}\. Remove it"
    )
    for each in start(threads, run, ranks, PATIENCE_S, "file"):
        with pytest.raises(UserError, match=expected):
            each.result()
    assert {*os.listdir(folder.parent)} - {"7.0.0.secret"} == {*before}
    assert os.listdir(folder.parent / "elsewhere") == []


def test_a_missing_rank_0_is_reported(run: RunDir) -> None:
    with pytest.raises(RendezvousError, match=r"rank 1 .* found no .*7\.0\.0\.filestore: rank 0 did not"):
        meet(run, worlds(2, "7.0.0")[1], SHORT_S, "file")


def test_a_file_rendezvous_under_torchrun_is_refused(run: RunDir) -> None:
    world = replace(worlds(2, "torchrun-29500.0")[0], master_addr="127.0.0.1", master_port=29500)
    with pytest.raises(UserError, match=r"train.rendezvous is file, but a launcher has set MASTER_ADDR"):
        meet(run, world, SHORT_S, "file")
