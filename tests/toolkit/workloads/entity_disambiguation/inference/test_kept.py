"""Runs keep their database of entities, and share the files of the same database."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.toolkit.workloads.entity_disambiguation.entity_files import tiny_entities
from toolkit.config import Experiment
from toolkit.run.run_dir import RunDir
from toolkit.workloads.entity_disambiguation.data.entities.write_folder import files_of, folder_fingerprint
from toolkit.workloads.entity_disambiguation.data.samples.prepared import prepare
from toolkit.workloads.entity_disambiguation.files import DisambiguationFiles
from toolkit.workloads.entity_disambiguation.inference.kept import keep


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    return tiny_entities(tmp_path / "files")


def kept_by(name: str, experiment: Experiment, tmp_path: Path) -> Path:
    """The database that a run of this name has kept."""
    run = RunDir(tmp_path / name)
    run.artifacts.mkdir(parents=True)
    keep(run, experiment.data, prepare(experiment.data))
    return DisambiguationFiles(run).entity_db


def inodes(folder: Path) -> list[int]:
    return [file.stat().st_ino for file in files_of(folder)]


def test_runs_share_a_copy_of_the_database_separate_from_the_original(
    experiment: Experiment, tmp_path: Path
) -> None:
    origin = Path(experiment.data.entity_db)
    one, other = (kept_by(name, experiment, tmp_path) for name in ("one", "other"))
    assert inodes(one) == inodes(other)
    assert not {*inodes(one)} & {*inodes(origin)}
    (origin / "entity_mappings" / "qid2title.json").write_text("{}")
    shutil.rmtree(experiment.data.prepared_dir)
    shutil.rmtree(one)
    assert folder_fingerprint(other) != folder_fingerprint(origin)
    assert "arn.river" in (other / "entity_mappings" / "qid2title.json").read_text()


def test_run_keeps_its_own_copy_if_the_folder_of_sets_is_not_writable(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of prepared sets may belong to another user."""
    prepare(experiment.data)
    sets, make = Path(experiment.data.prepared_dir), Path.mkdir

    def refusing(path: Path, *args: int, **settings: bool) -> None:
        if path.parent == sets:
            raise PermissionError(13, "Permission denied", str(path))
        make(path, *args, **settings)

    monkeypatch.setattr(Path, "mkdir", refusing)
    kept = kept_by("one", experiment, tmp_path)
    assert folder_fingerprint(kept) == folder_fingerprint(Path(experiment.data.entity_db))
