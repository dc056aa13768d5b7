"""Only one of many processes builds a prepared set; an interrupted build leaves no files."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S
from tests.toolkit.workloads.text_classification.data.films import left_over, some_rows, write_table
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.prepared import prepare

REPOSITORY = Path(__file__).parents[5]


def start(data: TextTable, before: str = "", progress: str = "None") -> subprocess.Popen[str]:
    """A process that prepares the table and prints whether it built."""
    program = (
        "import os, signal, resource\n"
        "from toolkit.workloads.text_classification.config import TextTable\n"
        "from toolkit.workloads.text_classification.data.prepared import prepare\n"
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


def test_only_one_of_many_processes_builds(table: TextTable) -> None:
    write_table(Path(str(table.path)), some_rows(5000))
    processes = [start(table) for _ in range(4)]
    printed = [process.communicate(timeout=PATIENCE_S) for process in processes]
    assert sorted(out.strip() for out, _ in printed) == ["False", "False", "False", "True"], printed
    prepare(table).verify()


@pytest.mark.parametrize("stage", ["read", "tokenize", "encode"])
def test_a_killed_builder_leaves_no_set(table: TextTable, stage: str) -> None:
    kill = f"lambda stage, *_: stage == {stage!r} and os.kill(os.getpid(), signal.SIGKILL)"
    killed = start(table, progress=kill)
    killed.communicate(timeout=PATIENCE_S)
    assert killed.returncode == -signal.SIGKILL
    (orphan,) = left_over(table)
    assert orphan.endswith(f".{killed.pid}.{socket.gethostname()}.tmp")
    prepared = prepare(table)
    assert prepared.built
    assert left_over(table) == [prepared.path.name]


@pytest.mark.parametrize("kilobytes", [1, 30, 100, 400])
def test_a_full_disk_leaves_no_files(table: TextTable, kilobytes: int) -> None:
    """A limit on file sizes replaces a full disk, so writing fails at different points."""
    write_table(Path(str(table.path)), some_rows(20_000))
    limited = start(
        table, before=f"resource.setrlimit(resource.RLIMIT_FSIZE, ({kilobytes * 1024}, {kilobytes * 1024}))"
    )
    _, error = limited.communicate(timeout=PATIENCE_S)
    assert limited.returncode == 1
    assert f"toolkit.errors.DataError: cannot write under {table.prepared_dir}" in error
    assert "et data.prepared_dir to a folder that you may write and that has room" in error
    assert left_over(table) == []
