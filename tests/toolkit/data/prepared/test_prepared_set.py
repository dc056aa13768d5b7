"""A prepared set is complete or absent: columns are read as written, and damage is found and repaired."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from filelock import FileLock

from toolkit.data.prepared import folder as prepared_folder
from toolkit.data.prepared.arrays import map_array, map_lists, write_array
from toolkit.data.prepared.build_once import publish_once
from toolkit.data.prepared.columns import Column, split_ids
from toolkit.data.prepared.database import DATABASE, commit, new_database, reading
from toolkit.data.prepared.folder import PreparedFolder
from toolkit.data.prepared.manifest import write_manifest
from toolkit.data.ragged import Lists, offsets_of
from toolkit.data.sources.source_files import SourceFile, set_place, with_fingerprint
from toolkit.errors import DataError
from toolkit.workload import silent

TOKENS, OFFSETS = Column("tokens.bin"), Column("offsets.bin", "<i8")
PAIRS = Column("pairs.bin", "<i2", 2)
LISTS: tuple[list[int], ...] = ([5, 7], [], [70_000])


class Toy(PreparedFolder[Lists]):
    """Three lists, all of them one split."""

    VERSION = 4
    COLUMNS: ClassVar[tuple[Column, ...]] = (TOKENS, OFFSETS, PAIRS)
    FACTS = ("splits", "size")

    def _samples(self, split: str) -> Lists:
        return map_lists(self.path, TOKENS.of(self.meta["token_dtype"]), OFFSETS)


def write(folder: Path, fingerprint: str = "ab", **facts: Any) -> None:
    with new_database(folder, "CREATE TABLE lists (id INTEGER PRIMARY KEY, text TEXT);") as database:
        database.executemany("INSERT INTO lists VALUES (?, ?)", enumerate(map(str, LISTS)))
        commit(database, "CREATE INDEX by_text ON lists (text);")
    write_array(folder, TOKENS.of("<u4"), [number for each in LISTS for number in each])
    write_array(folder, OFFSETS, offsets_of(np.array([len(each) for each in LISTS])))
    write_array(folder, PAIRS, np.arange(6).reshape(3, 2))
    write_array(folder, split_ids("train"), np.arange(3))
    known = {"version": 4, "fingerprint": fingerprint, "splits": {"train": 3}, "token_dtype": "<u4"}
    write_manifest(folder, {**known, "size": 3, **facts})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "toy"


def made(path: Path, fill: Callable[[Path], None] = write) -> Toy:
    return Toy.open_or_build(path, "ab", fill)


def left_over(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.parent.iterdir() if entry.suffix != ".lock")


@contextmanager
def changed(file: Path) -> Iterator[bytearray]:
    content = bytearray(file.read_bytes())
    yield content
    file.write_bytes(content)


def test_a_set_is_built_once_and_then_reused(path: Path) -> None:
    assert [made(path).built, made(path).built] == [True, False]
    assert left_over(path) == ["toy"]


def test_a_set_without_a_declared_column_is_refused_when_built_or_opened(path: Path) -> None:
    class Older(Toy):
        COLUMNS = (TOKENS, OFFSETS)

    class Newer(Toy):
        COLUMNS = (*Toy.COLUMNS, Column("triples.bin", "<i2", 3))

    with pytest.raises(DataError, match=r"triples\.bin"):
        Newer.open_or_build(path, "ab", write)
    assert Older.open_or_build(path, "ab", write).fingerprint == "ab"
    with pytest.raises(DataError, match=r"triples\.bin"):
        Newer.open(path)


def test_columns_come_back_as_they_were_written(path: Path) -> None:
    prepared = made(path)
    lists = prepared.split("train")
    assert lists.values.dtype == np.uint32
    assert lists.gather(np.arange(3), -1).tolist() == [[5, 7], [-1, -1], [70_000, -1]]
    pairs = map_array(path, PAIRS)
    assert pairs.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert (type(pairs), pairs.dtype, pairs.flags.writeable) == (np.ndarray, np.int16, False)
    with reading(prepared.database) as database:
        assert database.execute("SELECT text FROM lists WHERE id = 1").fetchall() == [("[]",)]


def test_rows_of_another_width_are_refused(path: Path) -> None:
    """They would be read as other rows."""

    def fill(folder: Path) -> None:
        write_array(folder, PAIRS, np.arange(6).reshape(2, 3))

    with pytest.raises(DataError, match=r"pairs.bin.*\[2, 3\].*\[n, 2\]"):
        made(path, fill)
    assert not path.exists()


def test_split_with_more_or_fewer_samples_than_its_manifest_says_is_refused(path: Path) -> None:
    prepared = made(path, lambda folder: write(folder, splits={"train": 2}))
    with pytest.raises(DataError, match="3 samples, expected 2"):
        prepared.split("train")


def test_summary_and_json_describe_the_set(path: Path) -> None:
    prepared = made(path)
    assert prepared.summary() == f"prepared: train 3; {path}"
    expected = {"path": str(path), "built": True, "fingerprint": "ab", "splits": {"train": 3}, "size": 3}
    assert prepared.to_json() == expected


def test_an_unknown_split_is_named(path: Path) -> None:
    with pytest.raises(DataError, match="no split 'test', only train"):
        made(path).split("test")


@pytest.mark.parametrize("name", ["tokens.bin", "offsets.bin", DATABASE, "meta.json"])
def test_a_set_with_a_truncated_or_missing_file_is_reported_and_rebuilt(path: Path, name: str) -> None:
    made(path)
    os.truncate(path / name, (path / name).stat().st_size // 2)
    for _ in range(2):
        with pytest.raises(DataError, match=name):
            Toy.open(path)
        assert made(path).built
        (path / name).unlink()
    assert made(path).built
    assert left_over(path) == ["toy"]
    Toy.open(path).verify()


def test_verify_finds_a_flipped_bit(path: Path) -> None:
    made(path)
    with changed(path / "tokens.bin") as content:
        content[3] ^= 1
    with pytest.raises(DataError, match=r"tokens\.bin is damaged"):
        Toy.open(path).verify()


def test_a_set_with_another_fingerprint_is_rebuilt(path: Path) -> None:
    Toy.open_or_build(path, "cd", lambda folder: write(folder, "cd"))
    assert made(path).built
    assert Toy.open(path).fingerprint == "ab"


def test_a_set_of_another_format_is_refused(path: Path) -> None:
    made(path)
    with changed(path / "meta.json") as content:
        content[:] = content.replace(b'"version": 4', b'"version": 99')
    with pytest.raises(DataError, match="format 99, expected 4"):
        Toy.open(path)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE])
def test_a_set_that_may_not_or_cannot_be_read_is_left_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Neither a private set of another user is damaged, nor one on a disk that does not answer."""

    def refuse(file: Path) -> None:
        raise OSError(number, os.strerror(number), str(file))

    made(path)
    (path / "theirs").touch()
    with monkeypatch.context() as patch:
        patch.setattr("toolkit.data.prepared.manifest.read_json", refuse)
        with pytest.raises(DataError, match=rf"{path}.* (may not be read|{os.strerror(number)})"):
            made(path)
    # Of the arrays alone: whether the folder is there is asked before.
    monkeypatch.setattr(
        Path, "stat", lambda file, **_: os.stat(file) if file.suffix != ".bin" else refuse(file)
    )
    with pytest.raises(DataError, match=rf"\.bin cannot be read .*{os.strerror(number)}"):
        made(path)
    assert (path / "theirs").exists()
    assert left_over(path) == ["toy"]


def test_a_finished_set_is_opened_while_another_process_holds_the_lock(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(path)
    monkeypatch.setattr(prepared_folder, "_LOCK_TIMEOUT_S", 0)
    with FileLock(path.with_name(f".{path.name}.lock")):
        assert not made(path).built


def test_a_store_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot write under .*file/store: .*Set data\.prepared_dir"):
        made(tmp_path / "file" / "store" / "toy")


def test_the_first_finished_set_stays_if_locks_do_not_work(tmp_path: Path) -> None:
    """On a file system without working locks, another process finishes first."""
    path = tmp_path / "set"

    def fill(folder: Path) -> None:
        (folder / "mine").touch()
        path.mkdir()
        (path / "theirs").touch()

    assert not publish_once(path, fill, (path / "theirs").exists, 10)
    assert [entry.name for entry in path.iterdir()] == ["theirs"]
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_damaged_database_is_a_data_error(tmp_path: Path) -> None:
    database = tmp_path / DATABASE
    database.write_bytes(b"no database at all" * 100)
    with pytest.raises(DataError, match=r"samples\.sqlite is damaged"), reading(database) as connection:
        connection.execute("SELECT * FROM lists")


def test_a_missing_or_changed_source_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    with pytest.raises(DataError, match=r"a\.txt cannot be read: No such file"):
        SourceFile.open(str(file), None, silent, tmp_path)
    file.write_text("one")
    source = SourceFile.open(str(file), None, silent, tmp_path)
    source.check_unchanged()
    file.write_text("another")
    with pytest.raises(DataError, match=r"a\.txt changed while"):
        source.check_unchanged()


def test_the_folder_is_named_by_the_first_source_and_the_content(tmp_path: Path) -> None:
    file = tmp_path / "films & more.tsv"
    file.write_text("one")
    source = SourceFile.open(str(file), None, silent, tmp_path)
    description, other = (with_fingerprint({"version": number}) for number in (1, 2))
    path, fingerprint = set_place(str(tmp_path / "store"), [source], description)
    assert path == tmp_path / "store" / f"films_more-{fingerprint[:16]}"
    assert (len(fingerprint), fingerprint != other["fingerprint"]) == (64, True)
