"""`stk clean`: what may go, what never goes, and that a crash leaves no half of a checkpoint."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm.runs.cleaning import references, removing
from slurm.runs.cleaning.choosing import Item, Wishes, of_run
from slurm.runs.cleaning.removing import remove_items
from slurm.status.rows import RunStatus
from slurm.status.submissions import record
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import User
from toolkit.checkpoint import paths
from toolkit.files import append_json_line, crc32, write_json
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import MANIFEST, PROGRESS, TRAINING, WEIGHTS, RunDir, archive_run


def save(run: RunDir, step: int, best_step: int | None = None, days: float = 0) -> Path:
    """A checkpoint whose manifest tells the truth, made so many days ago."""
    folder = run.checkpoint(step)
    folder.mkdir(parents=True)
    write_json(folder / PROGRESS, {"progress": {"step": step, "best_step": best_step}, "scaler": {}})
    for name in (WEIGHTS, TRAINING):
        (folder / name).write_bytes(b"w" * 1000)
    files = {
        name: {"bytes": (folder / name).stat().st_size, "crc32": crc32(folder / name)}
        for name in (WEIGHTS, TRAINING, PROGRESS)
    }
    write_json(folder / MANIFEST, {"version": 1, "step": step, "files": files})
    then = time.time() - days * 86400
    os.utime(folder / MANIFEST, (then, then))
    return folder


def finish(run: RunDir, best: int) -> None:
    write_json(run.result, {"state": "finished", "step": 40, "best": {"step": best}, "metrics": {}})


def fail(run: RunDir) -> None:
    write_json(run.failure, {"class": "exception", "rank": 0, "host": "here", "message": "boom"})


@pytest.fixture
def run(user: User) -> RunDir:
    """A run with four checkpoints, the second of which is the best."""
    made = create_run(user.experiment(), user.experiments)
    for step in (10, 20, 30, 40):
        save(made, step, 20)
    paths.replace_link(made.best, made.checkpoint(20).name)
    paths.replace_link(made.last, made.checkpoint(40).name)
    return made


def clean(user: User, *arguments: object) -> dict[str, Any]:
    """What `stk clean --json` answers."""
    answer = user.stk("clean", "--json", *arguments)
    assert (answer.code, answer.err) == (0, "")
    return dict(json.loads(answer.out))


def test_best_and_newest_checkpoints_are_kept(user: User, run: RunDir) -> None:
    finish(run, best=20)
    answer = clean(user, "--yes")
    assert run.checkpoint_steps() == [20, 40]
    assert [item["what"] for item in answer["items"]] == ["checkpoint of step 10", "checkpoint of step 30"]
    assert answer["deleted_bytes"] == answer["bytes"] > 4000
    assert run.checkpoint_leftovers() == []


def test_a_dry_run_touches_nothing(user: User, run: RunDir) -> None:
    finish(run, best=20)
    before = user.listing
    answer = clean(user, "--dry-run")
    assert len(answer["items"]) == 2
    assert answer["deleted"] == []
    assert user.listing == before


def test_keep_last_0_keeps_only_the_best_of_a_finished_run(user: User, run: RunDir) -> None:
    finish(run, best=20)
    clean(user, "--keep-last", 0, "--yes")
    assert run.checkpoint_steps() == [20]
    assert run.last.resolve() == run.checkpoint(20)


def test_damaged_newest_checkpoint_is_not_the_one_to_resume_from(user: User, run: RunDir) -> None:
    fail(run)
    (run.checkpoint(40) / WEIGHTS).write_bytes(b"x" * 1000)
    clean(user, "--keep-last", 0, "--yes")
    assert run.checkpoint_steps() == [20, 30]


def test_all_checkpoints_are_kept_if_none_is_intact(user: User, run: RunDir) -> None:
    fail(run)
    for step in run.checkpoint_steps():
        (run.checkpoint(step) / WEIGHTS).unlink()
    assert clean(user, "--keep-last", 0, "--yes")["items"] == []


def test_best_checkpoint_named_by_the_newest_is_kept_without_the_link(user: User, run: RunDir) -> None:
    fail(run)
    run.best.unlink()
    clean(user, "--yes")
    assert run.checkpoint_steps() == [20, 40]


def test_a_live_run_is_left_alone_and_named(user: User, run: RunDir) -> None:
    with FileLock(run.alive):
        answer = clean(user, "--yes")
    assert answer["items"] == []
    assert answer["kept"] == [{"run_id": run.run_id, "what": "all", "why": "it is running"}]
    assert len(run.checkpoint_steps()) == 4


def test_a_run_whose_job_may_live_is_left_alone(user: User, fake: FakeSlurm, run: RunDir) -> None:
    record(run, cluster="slurm", job_id="101", name="x")
    fake.goes_away()
    answer = clean(user, "--yes")
    assert answer["items"] == []
    assert "it is not known whether it is live" in answer["kept"][0]["why"]


@pytest.mark.parametrize("key", ["train.start_from_checkpoint", "model.teacher"])
def test_checkpoint_that_another_run_starts_from_is_kept_and_named(user: User, run: RunDir, key: str) -> None:
    """Also if a key of a workload names it."""
    finish(run, best=20)
    theirs = create_run(user.experiment(f"{key}={run.checkpoint(10)}"), user.experiments)
    answer = clean(user, "--yes", run.run_id)
    assert run.checkpoint_steps() == [10, 20, 40]
    why = f"{theirs.run_id} begins with it"
    assert answer["kept"] == [{"run_id": run.run_id, "what": "checkpoint of step 10", "why": why}]


def test_checkpoint_named_through_a_link_is_kept(user: User, run: RunDir) -> None:
    finish(run, best=20)
    (user.root / "link").symlink_to(run.checkpoint(30))
    create_run(user.experiment(f"train.start_from_checkpoint=link/{WEIGHTS}"), user.experiments)
    clean(user, "--yes", run.run_id)
    assert run.checkpoint_steps() == [20, 30, 40]


def test_the_newest_checkpoint_stays_if_a_program_marked_no_best_one(user: User, run: RunDir) -> None:
    run.best.unlink()
    for step in (10, 20, 30, 40):
        write_json(run.checkpoint(step) / PROGRESS, {})
    write_json(run.result, {"state": "finished", "step": None, "best": {}, "metrics": {}})
    clean(user, "--keep-last", "0", "--yes")
    assert run.checkpoint_steps() == [40]


def test_checkpoint_that_a_program_saved_as_the_best_is_kept_without_the_link(
    user: User, run: RunDir
) -> None:
    run.best.unlink()
    for step in (10, 20, 30, 40):
        write_json(run.checkpoint(step) / PROGRESS, {})
    write_json(run.checkpoint(20) / MANIFEST, {"best": True})
    write_json(run.result, {"state": "finished", "step": None, "best": {}, "metrics": {}})
    clean(user, "--yes")
    assert run.checkpoint_steps() == [20, 40]


@pytest.mark.parametrize("age", ["7d", "604800s"])
def test_checkpoints_newer_than_older_than_are_kept(user: User, age: str) -> None:
    run = create_run(user.experiment(), user.experiments)
    for step, days in ((10, 9), (20, 8), (30, 1), (40, 0)):
        save(run, step, days=days)
    finish(run, best=40)
    clean(user, "--older-than", age, "--yes")
    assert run.checkpoint_steps() == [30, 40]


def test_runs_in_other_states_are_left_alone(user: User, run: RunDir) -> None:
    fail(run)
    assert clean(user, "--state", "finished", "--yes")["items"] == []
    assert len(clean(user, "--state", "finished", "--state", "failed", "--dry-run")["items"]) == 2


def test_leftovers_of_killed_processes_are_deleted(user: User, run: RunDir) -> None:
    finish(run, best=20)
    (run.checkpoints / ".step_00000050.nonce.tmp").mkdir()
    (run.checkpoints / ".step_00000005.nonce.trash").mkdir()
    clean(user, "--yes")
    assert run.checkpoint_leftovers() == []


def test_logs_option_deletes_logs_of_earlier_attempts(user: User, run: RunDir) -> None:
    finish(run, best=20)
    for number, name in enumerate(["local-a", "local-b"]):
        for rank in (0, 1):
            log = run.log(name, rank)
            log.write_text("text")
            os.utime(log, (1000 + number, 1000 + number))
    (run.logs / "7.batch.log").write_text("text")
    clean(user, "--yes")
    assert len(list(run.logs.iterdir())) == 5
    clean(user, "--logs", "--yes")
    assert sorted(path.name for path in run.logs.iterdir()) == [
        "7.batch.log", "local-b.rank_00000.log", "local-b.rank_00001.log",
    ]  # fmt: skip


def test_old_option_deletes_archived_runs(user: User, run: RunDir) -> None:
    os.utime(run.path, (0, 0))
    aside = archive_run(run)
    for not_yet in (["--yes"], ["--old", "--older-than", "1d", "--yes"]):
        assert clean(user, *not_yet)["items"] == []
    (item,) = clean(user, "--old", "--yes")["items"]
    assert (item["kind"], item["run_id"]) == ("old", aside.name)
    assert list(aside.parent.iterdir()) == []


def test_old_option_with_a_run_deletes_only_what_was_set_aside_of_it(user: User, run: RunDir) -> None:
    aside = archive_run(run)
    create_run(user.experiment(), user.experiments)
    other = archive_run(create_run(user.experiment("name=other"), user.experiments))
    (item,) = clean(user, run.run_id, "--old", "--yes")["items"]
    assert item["run_id"] == aside.name
    assert list(aside.parent.iterdir()) == [other]


def test_old_option_deletes_what_an_ended_clean_has_left(user: User, run: RunDir) -> None:
    aside = archive_run(run)
    left = aside.rename(aside.with_name(f".{aside.name}.0a1b.trash"))
    (left / "config.yaml").unlink()
    create_run(user.experiment(), user.experiments)
    assert [item["run_id"] for item in clean(user, run.run_id, "--old", "--yes")["items"]] == [left.name]
    assert list(aside.parent.iterdir()) == []


def test_old_option_with_a_run_elsewhere_leaves_the_earlier_forms_of_its_namesake(
    user: User, run: RunDir
) -> None:
    aside = archive_run(run)
    elsewhere = create_run(user.experiment(), user.root / "elsewhere")
    assert clean(user, str(elsewhere.path), "--old", "--yes")["items"] == []
    assert aside.is_dir()


def test_nothing_is_deleted_without_a_terminal_or_yes(user: User, run: RunDir) -> None:
    finish(run, best=20)
    answer = user.stk("clean")
    assert answer.code == 2
    assert "--yes deletes it, --dry-run only shows it" in answer.err
    assert "checkpoint of step 10" in answer.out
    assert "in all 2 things, 4" in answer.out
    assert len(run.checkpoint_steps()) == 4


def test_clean_asks_nothing_if_there_is_nothing_to_delete(user: User) -> None:
    answer = user.stk("clean")
    assert (answer.code, answer.out.strip(), answer.err) == (0, "nothing to delete", "")


@pytest.mark.parametrize("wrong", [["--older-than", "7"], ["--keep-last", "-1"], ["--yes", "--dry-run"]])
def test_invalid_options_are_refused(user: User, wrong: list[str]) -> None:
    assert user.stk("clean", *wrong).code == 2


def test_a_run_that_has_started_since_the_preview_is_left_alone(user: User, run: RunDir) -> None:
    finish(run, best=20)
    now = _row(run, "finished")
    items = [each for each in of_run(run, now, {}, Wishes()) if isinstance(each, Item)]
    assert len(items) == 2
    run.result.unlink()
    with FileLock(run.alive):
        assert remove_items(items, user.experiments, Wishes()) == ([], {})
    assert len(run.checkpoint_steps()) == 4


def test_a_run_that_begins_with_a_checkpoint_while_others_are_deleted_keeps_it(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configs of the others are not read again for each run."""
    runs = [create_run(user.experiment(f"seed={seed}"), user.experiments) for seed in range(4)]
    items: list[Item] = []
    for each in runs:
        save(each, 20)
        save(each, 40)
        finish(each, best=40)
        found = of_run(each, _row(each, "finished"), {}, Wishes())
        items += [item for item in found if isinstance(item, Item)]
    assert len(items) == 4
    read: list[RunDir] = []
    named_by, remove = references._named_by, removing._remove
    begins = user.experiment(f"train.start_from_checkpoint={runs[-1].checkpoint(20)}")

    def begin(them: Sequence[Item]) -> None:
        remove(them)
        create_run(begins, user.experiments)

    monkeypatch.setattr(references, "_named_by", lambda one: read.append(one) or named_by(one))
    monkeypatch.setattr(removing, "_remove", begin)
    removed, failed = remove_items(items, user.experiments, Wishes())
    assert (removed, failed) == (items[:-1], {})
    assert max(map(read.count, runs)) <= 2


def test_a_crash_while_deleting_leaves_no_half_checkpoint(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(point: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        paths.remove(run.checkpoint(10), "nonce", crash)
    assert run.checkpoint_steps() == [20, 30, 40]
    assert len(run.checkpoint_leftovers()) == 1


def test_a_checkpoint_whose_replacement_was_lost_stays_until_the_next_start(user: User, run: RunDir) -> None:
    paths.put_aside(run.checkpoint(10))
    assert run.checkpoint_steps() == [20, 30, 40]
    assert run.checkpoint_leftovers() == []
    clean(user, "--yes")
    paths.take_back(run.checkpoint(10))
    assert run.checkpoint(10).is_dir()


@settings(max_examples=25, deadline=None)
@given(steps=st.sets(st.integers(1, 60), max_size=6), best=st.integers(1, 60), keep=st.integers(0, 4))
def test_only_checkpoints_besides_best_and_newest_are_deleted(
    tmp_path_factory: pytest.TempPathFactory, steps: set[int], best: int, keep: int
) -> None:
    run = RunDir(tmp_path_factory.mktemp("run"))
    for step in steps:
        save(run, step)
    finish(run, best)
    found = of_run(run, _row(run, "finished"), {}, Wishes(keep_last=keep))
    going = {item.paths[0] for item in found if isinstance(item, Item)}
    named = best if best in steps else max(steps, default=best)
    stay = {run.checkpoint(step) for step in [named, *sorted(steps, reverse=True)[:keep]]}
    assert going == {run.checkpoint(step) for step in steps} - stay


def test_half_written_files_do_not_stop_clean(user: User, run: RunDir) -> None:
    finish(run, best=20)
    for step in (30, 40):
        (run.checkpoint(step) / PROGRESS).write_text('{"progress": [')
        (run.checkpoint(step) / MANIFEST).write_text("")
    append_json_line(run.attempts, {"attempt": 1})
    assert clean(user, "--dry-run")["bytes"] > 0


def _row(run: RunDir, state: str) -> RunStatus:
    return RunStatus(run_id=run.run_id, run_dir=str(run.path), job_id=None, state=state)
