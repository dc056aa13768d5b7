"""A prepared set is whole or absent: damage is found, and of many processes one builds it."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from tests.toolkit.data.films import left_over, some_rows, write_table
from toolkit.config.kinds import TextTable
from toolkit.data import layout
from toolkit.data.prepared import Prepared, prepare
from toolkit.data.publish import publish_once
from toolkit.errors import DataError

REPOSITORY = Path(__file__).parents[3]


# -- damage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["tokens.bin", "offsets.bin", "labels.bin", "split_train.bin", "samples.sqlite", "meta.json"]
)
def test_a_truncated_or_missing_file_is_named_and_built_again(table: TextTable, name: str) -> None:
    path = prepare(table).path
    os.truncate(path / name, (path / name).stat().st_size // 2)
    for _ in range(2):
        with pytest.raises(DataError, match=name):
            Prepared.open(path)
        assert prepare(table).built
        (path / name).unlink()
    assert prepare(table).built
    assert left_over(table) == [path.name]
    Prepared.open(path).verify()


def test_a_flipped_bit_is_found_on_demand(table: TextTable) -> None:
    prepared = prepare(table)
    content = bytearray((prepared.path / "tokens.bin").read_bytes())
    content[7] ^= 1
    (prepared.path / "tokens.bin").write_bytes(content)
    with pytest.raises(DataError, match=r"tokens\.bin is damaged"):
        Prepared.open(prepared.path).verify()


def test_a_set_under_a_wrong_name_is_built_again(table: TextTable) -> None:
    path = prepare(table).path
    other = prepare(dataclasses.replace(table, lowercase=False))
    shutil.rmtree(path)
    other.path.rename(path)
    assert prepare(table).built
    assert Prepared.open(path).fingerprint != other.fingerprint


def test_a_set_of_another_format_is_refused(table: TextTable) -> None:
    prepared = prepare(table)
    meta = prepared.path / "meta.json"
    meta.write_text(meta.read_text().replace(f'"version": {layout.VERSION}', '"version": 99'))
    with pytest.raises(DataError, match="format 99"):
        Prepared.open(prepared.path)


def test_a_set_that_may_not_be_read_is_left_alone(table: TextTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else's set is not damaged because its owner keeps it private."""
    path = prepare(table).path
    (path / "theirs").touch()

    def refuse(file: Path) -> None:
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr("toolkit.data.sealed.read_json", refuse)
    with pytest.raises(DataError, match=r"meta\.json cannot be read .*Permission denied"):
        prepare(table)
    assert (path / "theirs").exists()
    assert left_over(table) == [path.name]


# -- several processes -----------------------------------------------------------------------------


def start(data: TextTable, before: str = "", progress: str = "None") -> subprocess.Popen[str]:
    """A process that prepares the table and prints whether it built."""
    program = (
        "import os, signal, resource\n"
        "from toolkit.config.kinds import TextTable\n"
        "from toolkit.data.prepared import prepare\n"
        f"{before}\n"
        f"print(prepare(TextTable(path={data.path!r}, prepared_dir={data.prepared_dir!r}), {progress}).built)"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_of_many_processes_one_builds(table: TextTable) -> None:
    write_table(Path(str(table.path)), some_rows(5000))
    processes = [start(table) for _ in range(4)]
    printed = [process.communicate(timeout=120) for process in processes]
    assert sorted(out.strip() for out, _ in printed) == ["False", "False", "False", "True"], printed
    prepare(table).verify()


@pytest.mark.parametrize("stage", ["read", "tokenize", "encode"])
def test_a_killed_builder_leaves_nothing_that_is_mistaken_for_a_set(table: TextTable, stage: str) -> None:
    kill = f"lambda stage, *_: stage == {stage!r} and os.kill(os.getpid(), signal.SIGKILL)"
    killed = start(table, progress=kill)
    killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL
    (orphan,) = left_over(table)
    assert orphan.endswith(f".{killed.pid}.{socket.gethostname()}.tmp")
    prepared = prepare(table)
    assert prepared.built
    assert left_over(table) == [prepared.path.name]


@pytest.mark.parametrize("kilobytes", [1, 30, 100, 400])
def test_a_full_disk_leaves_nothing_behind(table: TextTable, kilobytes: int) -> None:
    """A limit on file sizes stands in for the full disk: writing fails in different places."""
    write_table(Path(str(table.path)), some_rows(20_000))
    limited = start(
        table, before=f"resource.setrlimit(resource.RLIMIT_FSIZE, ({kilobytes * 1024}, {kilobytes * 1024}))"
    )
    _, error = limited.communicate(timeout=120)
    assert limited.returncode == 1
    assert f"toolkit.errors.DataError: cannot write under {table.prepared_dir}" in error
    assert "et data.prepared_dir to a folder that you may write and that has room" in error
    assert left_over(table) == []


def test_who_waits_too_long_is_told_for_whom(table: TextTable) -> None:
    path = prepare(table).path
    shutil.rmtree(path)
    path.with_name(f".{path.name}.4711.node7.cluster.tmp").mkdir()
    with (
        FileLock(path.with_name(f".{path.name}.lock")),
        pytest.raises(DataError, match=r"waited 0 s for .*films-.*, which process 4711 on node7\.cluster"),
    ):
        prepare(table, lock_timeout_s=0)


def test_a_ready_set_is_opened_while_somebody_holds_the_lock(table: TextTable) -> None:
    path = prepare(table).path
    with FileLock(path.with_name(f".{path.name}.lock")):
        assert not prepare(table, lock_timeout_s=0).built


def test_a_store_that_cannot_be_made_is_named(table: TextTable, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot write under .*file/prepared: .*Set data\.prepared_dir"):
        prepare(dataclasses.replace(table, prepared_dir=str(tmp_path / "file" / "prepared")))


def test_without_working_locks_the_first_set_stands(tmp_path: Path) -> None:
    """As on a file system whose locks do nothing: another process finishes first."""
    path = tmp_path / "set"

    def fill(folder: Path) -> None:
        (folder / "mine").touch()
        path.mkdir()
        (path / "theirs").touch()

    assert not publish_once(path, fill, (path / "theirs").exists, 10)
    assert [entry.name for entry in path.iterdir()] == ["theirs"]
    assert not list(tmp_path.glob(".*.tmp"))


def test_an_interrupted_build_leaves_nothing_behind(table: TextTable) -> None:
    def interrupt(stage: str, done: int, total: int | None) -> None:
        if stage == "tokenize":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(table, interrupt)
    assert left_over(table) == []


def test_preparing_needs_no_torch() -> None:
    program = "import sys, toolkit.data.prepared, toolkit.data.plan; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
