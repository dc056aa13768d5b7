"""Every file of a run is in its folder, and a run is found by id, prefix or path."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import RunNotFound
from toolkit.run.run_dir import RunDir, archive_run, find_run, find_runs


def make_run(parent: Path, name: str) -> RunDir:
    run = RunDir(parent / name)
    run.path.mkdir(parents=True)
    run.config.write_text("name: a\n")
    return run


def test_all_paths_are_inside_the_run_folder_and_distinct_and_none_is_created(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "movies-1f3a9c")
    properties = [name for name in dir(RunDir) if isinstance(getattr(RunDir, name), property)]
    paths = [path for name in properties if isinstance(path := getattr(run, name), Path)]
    paths += [run.ranks("a"), run.rendezvous("a"), run.log("a", 3), run.checkpoint(7)]
    paths += [run.artifact("labels.json"), run.artifact("benchmarks/a/b.txt")]
    assert len(paths) > 20
    assert all(run.path in path.parents for path in paths)
    assert len(set(paths)) == len(paths)
    assert run.checkpoint_steps() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", ".", "..", "../config.yaml", "a/../../b", "/etc/passwd"])
def test_artifact_outside_the_artifacts_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="artifacts"):
        RunDir(tmp_path).artifact(name)


@given(steps=st.sets(st.integers(0, 10**12), max_size=8))
def test_checkpoints_are_listed_by_step(tmp_path_factory: pytest.TempPathFactory, steps: set[int]) -> None:
    run = RunDir(tmp_path_factory.mktemp("run"))
    for step in steps:
        run.checkpoint(step).mkdir(parents=True)
    assert run.checkpoint_steps() == sorted(steps)


def test_folders_with_similar_names_are_not_checkpoints(run: RunDir) -> None:
    for name in (".step_00000001.tmp", "step_1", "step_00000002.old", "best", ".step_00000003.damaged.5"):
        (run.checkpoints / name).mkdir(parents=True)
    assert run.checkpoint_steps() == []


def test_checkpoints_that_cannot_be_listed_now_do_not_count_as_none(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a network file system whose server has been started again. The run would start over."""

    def fail(path: Path) -> list[str]:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)

    monkeypatch.setattr(os, "listdir", fail)
    # As on Python 3.14.
    monkeypatch.setattr(Path, "is_dir", lambda path: False)
    with pytest.raises(OSError, match="Stale"):
        run.checkpoint_steps()


def test_run_is_found_by_any_file_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path, "movies-1f3a9c")
    run.artifacts.mkdir()
    named = run.artifact("movies_testset_predictions.csv")
    named.touch()
    assert find_run(str(named), tmp_path / "elsewhere").path == run.path.resolve()
    monkeypatch.chdir(run.artifacts)
    assert find_run(named.name, tmp_path / "elsewhere").path == run.path.resolve()


def test_file_outside_of_every_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "table.csv").touch()
    with pytest.raises(RunNotFound, match=r"table\.csv"):
        find_run(str(tmp_path / "table.csv"), tmp_path / "runs")


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    for name in ("movies-1f3a9c", "movies-1f77aa", "spelling-0b5e11", "spell"):
        make_run(tmp_path, name)
    (tmp_path / "old").mkdir()
    (tmp_path / "movies-empty").mkdir()
    return tmp_path


def test_runs_are_the_folders_with_a_config(parent: Path) -> None:
    found = [run.run_id for run in find_runs(parent)]
    assert found == ["movies-1f3a9c", "movies-1f77aa", "spell", "spelling-0b5e11"]
    assert list(find_runs(parent / "missing")) == []


@pytest.mark.parametrize(
    "typed, found",
    [
        ("movies-1f3a9c", "movies-1f3a9c"),
        ("movies-1f3", "movies-1f3a9c"),
        ("spelling", "spelling-0b5e11"),
        # An id that begins another one is still an id.
        ("spell", "spell"),
    ],
)
def test_run_is_found_by_its_id_or_an_unambiguous_prefix(parent: Path, typed: str, found: str) -> None:
    assert find_run(typed, parent).run_id == found


def test_run_is_found_by_the_path_of_its_folder(parent: Path, tmp_path: Path) -> None:
    assert find_run(str(parent / "spell"), tmp_path / "elsewhere").path == (parent / "spell").resolve()


def test_run_is_found_by_a_path_below_the_folder_of_runs(parent: Path) -> None:
    """As the folder of a preparation, which has logs like a run."""
    run = make_run(parent / "preparations", "spell")
    run.logs.mkdir()
    assert find_run("preparations/spell", parent).path == run.path


def test_ambiguous_prefix_names_the_candidates(parent: Path) -> None:
    with pytest.raises(RunNotFound, match="names 2 runs: movies-1f3a9c, movies-1f77aa"):
        find_run("movies", parent)


def test_unknown_name_lists_the_existing_runs(parent: Path) -> None:
    with pytest.raises(RunNotFound, match=r"no run 'picture' under .*: movies-1f3a9c, .*spelling-0b5e11"):
        find_run("picture", parent)
    with pytest.raises(RunNotFound, match="runs there: none"):
        find_run("picture", parent / "missing")


def test_a_run_without_its_config_is_named(parent: Path) -> None:
    (parent / "movies-1f3a9c" / "config.yaml").unlink()
    (parent / "movies-1f3a9c" / "logs").mkdir()
    with pytest.raises(RunNotFound, match="movies-1f3a9c has logs, but no config"):
        find_run("movies-1f3a9c", parent)


def test_archived_run_is_moved_and_kept_complete(tmp_path: Path) -> None:
    run = make_run(tmp_path, "movies-1f3a9c")
    places = [archive_run(run)]
    make_run(tmp_path, "movies-1f3a9c")
    places.append(archive_run(run))
    assert not run.path.exists()
    assert len(set(places)) == 2
    assert all((place / "config.yaml").is_file() and place.parent == tmp_path / "old" for place in places)
    assert list(find_runs(tmp_path)) == []


def test_logs_are_found_by_start_and_rank(run: RunDir) -> None:
    assert (list(run.rank_logs()), run.job_logs()) == ([], [])
    run.logs.mkdir()
    paths = {
        run.log("101.0.1", 12),
        run.log("local-my.host-1", 0),
        run.job_log("101"),
        run.launcher_log("x.0"),
    }
    for path in (*paths, run.logs / "notes.txt", run.logs / "x.rank_a.log"):
        path.touch()
    assert {(nonce, rank) for nonce, rank, _ in run.rank_logs()} == {("101.0.1", 12), ("local-my.host-1", 0)}
    assert set(run.job_logs()) == {run.job_log("101"), run.launcher_log("x.0")}


def test_has_code_checks_for_a_module_in_the_code_of_a_run(run: RunDir) -> None:
    assert not run.has_code("toolkit.launch.rank_main")
    (run.code / "toolkit" / "launch").mkdir(parents=True)
    (run.code / "toolkit" / "launch" / "rank_main.py").touch()
    assert run.has_code("toolkit.launch.rank_main")
