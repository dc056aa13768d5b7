"""Any number of processes prepares the same set, and an interruption loses no finished shard."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.patience import PATIENCE_S
from tests.toolkit.workloads.spelling.data.samples.conftest import Make
from toolkit.config import load
from toolkit.errors import DataError
from toolkit.exit_codes import ExitCode
from toolkit.run.create_run import create_run
from toolkit.workloads.spelling.data.samples.prepared import SpellingSet, prepare
from toolkit.workloads.spelling.data.samples.shards import Shard, ShardMaker

_UNTIL_KILLED = """\
import json, os, signal, sys
from toolkit.config import load
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.prepared import prepare

def killed(stage, done, total):
    if stage == "make samples" and done >= 30:
        import psutil
        print(*[child.pid for child in psutil.Process().children()], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    layout.SHARD = 10
    prepare(load(__import__("pathlib").Path(sys.argv[1]), sys.argv[2:]).data, killed)
"""


_JOB = """\
import sys, time
from pathlib import Path
from slurm.job import preparation
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.shards import ShardMaker

make = ShardMaker.make

def waiting(self, shard):
    if shard.first:
        print("here\\n", end="", flush=True)  # at once, also without a buffer: another process writes too
        while not Path(sys.argv[2]).exists():
            time.sleep(0.01)
    make(self, shard)

ShardMaker.make = waiting
layout.SHARD = 10
if __name__ == "__main__":
    sys.exit(preparation.main())
"""


def content(prepared: SpellingSet) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(prepared.path.iterdir())}


def test_any_number_of_processes_writes_the_same_bytes(make: Make, tmp_path: Path, small_shards: int) -> None:
    one, two, three = (
        prepare(make(workers=count, prepared_dir=str(tmp_path / str(count)))) for count in (1, 2, 3)
    )
    assert one.path != two.path
    assert content(one) == content(two) == content(three)


def test_progress_is_reported_after_each_shard(make: Make, small_shards: int) -> None:
    said: list[tuple[str, int, int | None]] = []
    prepare(make(), lambda *progress: said.append(progress))
    assert [done for stage, done, _ in said if stage == "make samples"] == [
        0, 10, 20, 30, 40, 50, 60, 70, 80, 84, 94, 95,
    ]  # fmt: skip


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_preparation_continues_with_the_finished_shards(
    make: Make,
    language: Path,
    tmp_path: Path,
    small_shards: int,
    monkeypatch: pytest.MonkeyPatch,
    workers: int,
) -> None:
    script = tmp_path / "killed.py"
    script.write_text(_UNTIL_KILLED, encoding="utf-8")
    interrupted = tmp_path / "interrupted"
    command = [sys.executable, str(script), str(language / "tiny_words.yaml")]
    overrides = [f'data.prepared_dir="{interrupted}"', f"data.workers={workers}"]
    killed = subprocess.run([*command, *overrides], capture_output=True, text=True, check=False)
    assert killed.returncode == -9, killed.stderr
    gone = [psutil.Process(int(pid)) for pid in killed.stdout.split() if psutil.pid_exists(int(pid))]
    psutil.wait_procs(gone, timeout=PATIENCE_S)
    assert not any(process.is_running() for process in gone)
    done = set(interrupted.glob(".*.parts/shard-*.npz"))
    assert len(done) >= 3

    made: list[Shard] = []
    make_one = ShardMaker.make

    def counted(self: ShardMaker, shard: Shard) -> None:
        made.append(shard)
        make_one(self, shard)

    monkeypatch.setattr(ShardMaker, "make", counted)
    finished = prepare(make(prepared_dir=str(interrupted)))
    assert len(made) == small_shards - len(done)
    assert not {shard.file(next(iter(done)).parent) for shard in made} & done
    assert content(finished) == content(prepare(make(prepared_dir=str(tmp_path / "whole"))))
    assert not list(interrupted.glob(".*.parts"))


def test_a_preparation_that_gets_a_signal_finishes_its_current_shards_quietly(
    language: Path, tmp_path: Path
) -> None:
    """All processes of a job get the signal, perhaps several times."""
    script = tmp_path / "job.py"
    script.write_text(_JOB, encoding="utf-8")
    experiment = load(
        language / "tiny_words.yaml", [f'data.prepared_dir="{tmp_path / "sets"}"', "data.workers=2"]
    )
    run = create_run(experiment, tmp_path)
    process = subprocess.Popen(
        [sys.executable, str(script), str(run.path), str(tmp_path / "go")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    told = ""
    while told.count("here\n") < 2:
        told += process.stdout.readline()
        assert process.poll() is None, told
    for _ in range(2):
        os.killpg(process.pid, signal.SIGTERM)
    (tmp_path / "go").touch()
    rest, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == ExitCode.INTERRUPTED, rest
    assert not [word for word in ("leaked", "Traceback", "was killed") if word in rest], rest
    assert len(list((tmp_path / "sets").glob(".*.parts/shard-*.npz"))) >= 2


def test_a_damaged_shard_is_made_again(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_one = ShardMaker.make

    def half(self: ShardMaker, shard: Shard) -> None:
        make_one(self, shard)
        path = shard.file(self.job.parts)
        if not (tmp_path / path.name).exists():
            (tmp_path / path.name).touch()
            path.write_bytes(path.read_bytes()[:100])

    monkeypatch.setattr(ShardMaker, "make", half)
    damaged = prepare(make())
    monkeypatch.undo()
    assert content(damaged) == content(prepare(make(prepared_dir=str(tmp_path / "whole"))))


@pytest.mark.parametrize("key", ["datasets", "tokenizer_path"])
def test_a_file_that_changes_while_samples_are_made_leaves_no_set(
    make: Make, tmp_path: Path, small_shards: int, key: str
) -> None:
    known = getattr(make(), key)
    path = Path(shutil.copy(known[0] if isinstance(known, tuple) else known, tmp_path))
    data = make(workers=1, **{key: (str(path),) if isinstance(known, tuple) else str(path)})

    def write(stage: str, done: int, total: int | None) -> None:
        if (stage, done) == ("make samples", 10):
            path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")

    with pytest.raises(DataError, match="changed"):
        prepare(data, write)
    folders = [each.name for each in Path(data.prepared_dir).iterdir() if each.is_dir()]
    assert not any("texts-" in name for name in folders), "neither a set nor shards"
    assert prepare(data).built


def test_a_file_that_is_written_again_with_the_same_content_is_accepted(
    make: Make, tmp_path: Path, small_shards: int
) -> None:
    path = Path(shutil.copy(make().datasets[0], tmp_path))

    def touch(stage: str, done: int, total: int | None) -> None:
        if (stage, done) == ("make samples", 10):
            os.utime(path, (0, 0))

    assert prepare(make(workers=1, datasets=(str(path),)), touch).built


def test_an_error_in_a_process_of_the_pool_is_reported(make: Make, tmp_path: Path, small_shards: int) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text('{"sequence": "a stone"}\n' * 25 + "no JSON\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"own\.jsonl:26: not JSON"):
        prepare(make(test=(str(path),), workers=2))
