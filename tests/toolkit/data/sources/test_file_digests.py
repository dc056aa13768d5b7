"""A source is read for its digest once: no rank and no later attempt reads it again, unless it changed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.toolkit.support.ranks import in_ranks
from tests.toolkit.support.tiny import tiny
from tests.toolkit.support.tiny_training import Attempt, train_rank
from toolkit.data.sources.file_digests import file_sha256, memory_of, remembered
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.workload import silent

#: Age in seconds of a file that stays young, however long a test takes: its writer's clock runs ahead.
YOUNG = -3600

_OPENED: list[str] = []
_SPYING = False


def spy(event: str, arguments: tuple[object, ...]) -> None:
    if _SPYING and event == "open":
        _OPENED.append(str(arguments[0]))


sys.addaudithook(spy)


@pytest.fixture
def opened() -> Iterator[list[str]]:
    """Names of the files that this process opens."""
    global _SPYING
    _OPENED.clear()
    _SPYING = True
    yield _OPENED
    _SPYING = False


def aged(path: Path, seconds: int = 3600) -> Path:
    """Let a file look as if it had been written so long ago."""
    before = path.stat().st_mtime_ns - seconds * 10**9
    os.utime(path, ns=(before, before))
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.tsv"
    path.write_text("text\tlabel\n")
    return aged(path)


def digest(path: Path) -> str:
    return file_sha256(path, -1, silent, path.parent / "prepared")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_file_is_read_once(source: Path, opened: list[str]) -> None:
    first = digest(source)
    assert opened.count(str(source)) == 1
    assert digest(source) == first
    assert opened.count(str(source)) == 1
    assert first == sha256(source)


def test_a_modified_file_is_read_again(source: Path) -> None:
    first = digest(source)
    source.write_text("text\tLABEL\n")
    assert digest(aged(source, 7200)) == sha256(source) != first


def test_a_replaced_file_of_equal_size_and_time_is_read_again(source: Path) -> None:
    before = source.stat()
    first = digest(source)
    other = source.with_name("other")
    other.write_text("text\tLABEL\n")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.rename(source)
    assert (source.stat().st_size, source.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert digest(source) == sha256(source) != first


def test_the_digest_of_a_recently_written_file_is_not_cached(source: Path, opened: list[str]) -> None:
    """Another change within the same tick of the file system's clock would not show."""
    aged(source, YOUNG)
    assert digest(source) == digest(source)
    assert opened.count(str(source)) == 2


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"stamps": 3}', "null", "\xff"])
def test_an_unreadable_cache_entry_is_written_again(source: Path, content: str) -> None:
    first = digest(source)
    (note,) = (source.parent / "prepared" / ".digests").iterdir()
    note.write_bytes(content.encode("latin-1"))
    assert digest(source) == first
    assert json.loads(note.read_text())["sha256"] == first


def test_a_digest_is_computed_if_the_cache_folder_cannot_be_written(source: Path) -> None:
    (source.parent / "prepared").write_text("a file stands where the folder would be")
    assert digest(source) == sha256(source)


@pytest.mark.parametrize("name", ["/dev/zero", "/tmp"])
def test_a_device_or_folder_is_refused(tmp_path: Path, name: str) -> None:
    """Or a device would be read for ever."""
    with pytest.raises(OSError, match=name):
        file_sha256(Path(name), -1, silent, tmp_path)


def test_a_value_cached_for_several_files_is_made_again_if_one_changes(source: Path) -> None:
    other = source.with_name("other")
    other.write_text("1")
    aged(other)
    made = []

    def make() -> str:
        made.append(1)
        return "digest"

    def ask() -> str:
        return remembered(source.parent, [source, other], make, source.parent / "prepared")

    assert [ask(), ask()] == ["digest", "digest"]
    assert len(made) == 1
    other.write_text("22")
    ask()
    assert len(made) == 2


def test_preparing_an_unchanged_source_again_does_not_read_it(tmp_path: Path, opened: list[str]) -> None:
    data = tiny(tmp_path).data
    for split in ("train", "validation", "test"):
        aged(tmp_path / f"{split}.tsv")
    first = data.prepare(silent)
    opened.clear()
    again = data.prepare(silent)
    assert [name for name in opened if name.endswith(".tsv")] == []
    assert (again.path, again.built) == (first.path, False)


def ranks_open(world: World, path: Path, attempt: Attempt) -> tuple[str, list[str]]:
    """How a rank's start ended, and the names of the sources that it opened."""
    global _SPYING
    _OPENED.clear()
    _SPYING = True
    outcome = train_rank(world, path, attempt)
    return outcome, [Path(name).name for name in _OPENED if name.endswith(".tsv")]


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [3600, YOUNG], ids=["old", "young"])
def test_rank_0_alone_reads_the_sources_and_a_later_attempt_reads_none(tmp_path: Path, seconds: int) -> None:
    experiment = tiny(tmp_path, "train.epochs=1")
    for split in ("train", "validation", "test"):
        aged(tmp_path / f"{split}.tsv", seconds)
    run: RunDir = create_run(experiment, tmp_path / "runs")
    experiment.data.prepare(silent)
    if seconds != YOUNG:
        shutil.rmtree(memory_of(experiment.data) / ".digests")
    first, second = in_ranks(2, ranks_open, run.path, Attempt(size=2, stop_after=3))
    assert (first[0], second[0]) == ("yielded", "yielded")
    assert sorted(first[1]) == ["test.tsv", "train.tsv", "validation.tsv"]
    assert second[1] == []
    if seconds != YOUNG:
        again = in_ranks(2, ranks_open, run.path, Attempt(size=2))
        assert again == [("finished", []), ("finished", [])]
