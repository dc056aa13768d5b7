"""`stk clean` deletes nothing but a run's own: links lead elsewhere, and one bad folder costs no other."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from tests.slurm.runs.cleaning.test_clean import clean, finish, save
from tests.slurm.support.user import User
from toolkit.checkpoint.paths import matches_manifest
from toolkit.files import read_json, write_json
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import MANIFEST, WEIGHTS, RunDir, archive_run


@pytest.fixture
def run(user: User) -> RunDir:
    """A finished run with three checkpoints, the newest of which is the best."""
    return finished(user)


def finished(user: User, *overrides: str) -> RunDir:
    made = create_run(user.experiment(*overrides), user.experiments)
    for step in (10, 20, 30):
        save(made, step, 30)
    finish(made, best=30)
    return made


@pytest.fixture
def elsewhere(user: User) -> Path:
    """A folder that no run has to do with."""
    folder = user.root / "elsewhere"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "config.yaml").write_text("name: precious\n")
    return folder


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_folder_of_old_runs_that_is_a_link_is_left_alone(user: User, run: RunDir, elsewhere: Path) -> None:
    (user.experiments / "old").symlink_to(elsewhere)
    answer = clean(user, "--old", "--yes")
    assert {item["kind"] for item in answer["items"]} == {"checkpoint"}
    assert listing(elsewhere) == ["inner", "inner/config.yaml"]


def test_a_link_among_old_runs_is_left_alone(user: User, run: RunDir, elsewhere: Path) -> None:
    aside = archive_run(finished(user, "seed=1"))
    (aside.parent / "link.20260101-000000-000000").symlink_to(elsewhere / "inner")
    (aside.parent / "notes").mkdir()
    answer = clean(user, "--old", "--yes")
    assert [item["paths"] for item in answer["items"] if item["kind"] == "old"] == [[str(aside)]]
    assert listing(elsewhere) == ["inner", "inner/config.yaml"]
    assert (aside.parent / "notes").is_dir(), "it is no run"


def test_only_the_link_of_a_linked_checkpoint_is_deleted(user: User, run: RunDir) -> None:
    other = finished(user, "seed=1")
    run.checkpoint(15).symlink_to(other.checkpoint(30))
    clean(user, run.run_id, "--yes")
    assert run.checkpoint_steps() == [30]
    assert matches_manifest(other.checkpoint(30))


@pytest.mark.parametrize("what", ["checkpoints", "logs", ""])
def test_a_folder_of_a_run_that_is_a_link_is_left_alone(user: User, run: RunDir, what: str) -> None:
    other = user.root / "of-another"
    (run.path / what).rename(other)
    (run.path / what).symlink_to(other)
    for start in ("one", "two"):
        (other / f"{start}.rank_00000.log").touch()
    before = listing(other)
    answer = clean(user, "--logs", "--yes")
    assert listing(other) == before
    if what == "logs":
        assert not [path for path in answer["deleted"] if "/logs/" in path]
    else:
        assert "link" in answer["kept"][0]["why"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize(
    "what, stay", [("", [10, 20, 30]), ("checkpoints", [10, 20, 30]), ("checkpoints/step_00000010", [10, 30])]
)
def test_files_of_another_user_are_left_alone(user: User, run: RunDir, what: str, stay: list[int]) -> None:
    os.chown(run.path / what, 65534, 65534)
    answer = clean(user, "--yes")
    assert run.checkpoint_steps() == stay
    assert answer["kept"][0]["why"] == f"it belongs to user {pwd.getpwuid(65534).pw_name}"


def test_run_that_cannot_be_deleted_does_not_stop_the_others(
    user: User, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = finished(user, "seed=1")
    first, second = sorted((run, other), key=lambda each: each.run_id)
    # A name that is taken: the checkpoint cannot be put aside under it.
    monkeypatch.setattr("slurm.runs.cleaning.removing.uuid.uuid4", lambda: type("Id", (), {"hex": "0" * 32}))
    (first.checkpoints / ".step_00000010.00000000.trash").write_text("a file")
    assert first.run_id in user.refused("clean", "--yes")
    assert second.checkpoint_steps() == [30]


def test_unreadable_run_does_not_stop_the_others(user: User, run: RunDir) -> None:
    other = finished(user, "seed=1")
    (run.checkpoints).rename(run.path / "aside")
    run.checkpoints.write_text("a file")
    run.config.write_text("train:\n  start_from_checkpoint: x\nz: " + "[" * 100_000 + "\n")
    answer = clean(user, "--yes")
    assert other.checkpoint_steps() == [30]
    assert {item["run_id"] for item in answer["items"]} == {other.run_id}


@pytest.mark.parametrize("name", ["/dev/zero", "../../secret"])
def test_checkpoint_whose_manifest_names_outside_files_is_not_intact(run: RunDir, name: str) -> None:
    (run.path / "secret").touch()
    folder = run.checkpoint(30)
    manifest = read_json(folder / MANIFEST)
    write_json(folder / MANIFEST, {**manifest, "files": {name: {"bytes": 0, "crc32": 0}}})
    assert not matches_manifest(folder)


def test_checkpoint_whose_weights_are_a_link_is_not_intact(run: RunDir) -> None:
    weights = run.checkpoint(30) / WEIGHTS
    assert matches_manifest(run.checkpoint(30))
    weights.rename(run.path / "weights")
    weights.symlink_to(run.path / "weights")
    assert not matches_manifest(run.checkpoint(30))
