"""failure.json explains the first failure of an attempt, not what followed from it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.toolkit.support.killed_worker import error_of_killed_worker
from tests.toolkit.support.ranks import in_ranks, worlds
from tests.toolkit.support.tiny import events
from toolkit.errors import (
    CheckpointError,
    DataError,
    DeviceError,
    NoProgress,
    RanksDiverged,
    RendezvousError,
    TrainingDiverged,
    UserError,
)
from toolkit.files import append_json_line, create_once, read_json
from toolkit.run.failure import records
from toolkit.run.failure.classes import advice_on, class_of
from toolkit.run.failure.records import (
    failure_record,
    first_failure,
    forget_failure,
    record_failure,
    write_first,
)
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World

PEER_LOST = RuntimeError("[../pair.cc:534] Connection closed by peer [127.0.0.1]:40001")
#: What torch says of operations under use_deterministic_algorithms.
AT_RANDOM = (
    "does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True)'"
)
CUBLAS_AT_RANDOM = (
    "Deterministic behavior was enabled, but this operation is not deterministic because it uses CuBLAS and "
    "you have CUDA >= 10.2"
)


class OutOfMemoryError(RuntimeError):
    """Named like CUDA's."""


def written_to(number: int) -> CheckpointError:
    """As the checkpoints raise it after an error of the disk."""
    error = CheckpointError("cannot write step_00000004")
    error.__cause__ = OSError(number, "of the disk")
    return error


@pytest.mark.parametrize(
    "error, name, advice",
    [
        (DataError("no such column"), "input", "Correct"),
        (TrainingDiverged("the loss is nan"), "diverged", "same step again"),
        (RendezvousError("rank 3 is missing"), "rendezvous", "network"),
        (RanksDiverged("weights differ", [1]), "ranks_diverged", "memory may be faulty"),
        (NoProgress("three starts"), "no_progress", "counters"),
        (CheckpointError("all are bad"), "checkpoint", "space"),
        (written_to(errno.EIO), "io", "file system"),
        (written_to(errno.ENOSPC), "full_disk", "stk resume"),
        (MemoryError(), "out_of_memory", "accumulation"),
        (OutOfMemoryError("CUDA out of memory"), "out_of_memory", "accumulation"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "out_of_memory", "memory"),
        (RuntimeError("DataLoader worker (pid 42) is killed by signal: Killed. "), "oom_killed", "memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "out_of_memory", "memory"),
        (OSError(errno.EADDRINUSE, "Address already in use"), "exception", "traceback"),
        (RuntimeError("server socket failed to listen: EADDRINUSE"), "address_in_use", "port"),
        (PEER_LOST, "peer_lost", "Another rank"),
        (RuntimeError("[../pair.cc:534] writev [127.0.0.1]:40001: Broken pipe"), "peer_lost", "Another rank"),
        (RuntimeError("Timed out waiting 8000ms for recv operation"), "peer_lost", "Another rank"),
        (RuntimeError("CUDA error: uncorrectable ECC error encountered"), "device", "GPU"),
        (RuntimeError("CUDA error: device-side assert triggered"), "exception", "traceback"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED"), "out_of_memory", "memory"),
        (
            RuntimeError("ncclUnhandledCudaError: failed. Last error:\nCuda failure 'out of memory'"),
            "out_of_memory",
            "memory",
        ),
        (RuntimeError("CUDA error: out of memory"), "out_of_memory", "memory"),
        (RuntimeError("Triton Error [CUDA]: out of memory"), "out_of_memory", "memory"),
        (RuntimeError("NCCL error in: x.cpp:1, unhandled system error, "), "communication", "network"),
        (DeviceError("host a"), "device", "GPU"),
        (RuntimeError(f"put_ {AT_RANDOM}"), "not_deterministic", "train.deterministic=false"),
        (RuntimeError(CUBLAS_AT_RANDOM), "not_deterministic", "train.deterministic=false"),
        (ModuleNotFoundError("No module named 'x'"), "import", "Install"),
        (OSError(errno.ESTALE, "Stale file handle"), "io", "file system"),
        (OSError(errno.ENOSPC, "No space left on device"), "io", "free space"),
        # Files that are missing or somebody else's do not come by waiting.
        (FileNotFoundError(errno.ENOENT, "no such file"), "exception", "traceback"),
        (PermissionError(errno.EACCES, "denied"), "exception", "traceback"),
        (ZeroDivisionError(), "exception", "traceback"),
        (KeyboardInterrupt(), "exception", "traceback"),
    ],
)
def test_failure_has_a_class_and_advice(error: BaseException, name: str, advice: str) -> None:
    assert class_of(error) == name
    assert advice in advice_on(name)


def test_module_that_a_users_file_lacks_is_no_wrong_input() -> None:
    error = UserError("task.py:1: cannot be imported (ModuleNotFoundError: No module named 'x')")
    error.__cause__ = ModuleNotFoundError("No module named 'x'")
    assert class_of(error) == "import"
    assert "Install" in advice_on("import")


def test_killed_worker_of_a_data_loader_is_out_of_memory_while_its_batch_is_awaited() -> None:
    assert class_of(error_of_killed_worker()) == "oom_killed"
    assert "memory" in advice_on("oom_killed")


def test_failure_record_has_rank_phase_step_message_and_traceback(run: RunDir) -> None:
    world = worlds(4)[2]
    with pytest.raises(ZeroDivisionError) as caught:
        raise ZeroDivisionError("in the model")
    assert record_failure(run, world, "backward", 17, caught.value)
    record = read_json(run.failure)
    assert (record["class"], record["rank"]) == ("exception", 2)
    assert (record["phase"], record["step"]) == ("backward", 17)
    assert record["message"] == "ZeroDivisionError: in the model"
    assert "test_records.py" in record["traceback"]
    assert record["nonce"] == world.nonce
    assert {"time", "host", "advice"} <= record.keys()
    assert [event["rank"] for event in events(run, "failure")] == [2]


def test_failure_that_names_a_file_whose_name_is_not_utf_8_is_recorded(run: RunDir) -> None:
    error = ValueError("cannot read " + os.fsdecode(b"caf_\xe9.jpg"))
    assert record_failure(run, World.single(), "data", 3, error)
    assert read_json(run.failure)["class"] == "exception"
    assert [event["class"] for event in events(run, "failure")] == ["exception"]
    assert r"caf_\udce9.jpg" in run.failure.read_text()


def test_first_failure_is_kept(run: RunDir) -> None:
    first, second = worlds(2)
    assert record_failure(run, second, "forward", 3, ValueError("cause"))
    assert not record_failure(run, first, "forward", 3, KeyError("later"))
    assert read_json(run.failure)["message"] == "ValueError: cause"
    assert len(events(run, "failure")) == 2


def test_cause_replaces_a_consequence_and_is_never_replaced(run: RunDir) -> None:
    first, second = worlds(2)
    assert record_failure(run, first, "communication", 3, PEER_LOST)
    assert record_failure(run, second, "forward", 3, ValueError("cause"))
    assert not record_failure(run, first, "communication", 3, PEER_LOST)
    assert read_json(run.failure)["message"] == "ValueError: cause"


def test_failure_of_an_earlier_attempt_is_replaced(run: RunDir) -> None:
    """An attempt that fails early has not yet removed the earlier failure."""
    record_failure(run, worlds(1, "first")[0], "forward", 3, ValueError("of the first attempt"))
    assert record_failure(run, worlds(1, "second")[0], "rendezvous", 0, RendezvousError("of the second"))
    assert read_json(run.failure)["nonce"] == "second"


def test_diverged_rank_is_blamed_whichever_rank_reports(run: RunDir) -> None:
    """The comparison raises the same on every rank."""
    world = worlds(3)[0]
    run.ranks(world.nonce).parent.mkdir()
    for rank in range(3):
        append_json_line(run.ranks(world.nonce), {"rank": rank, "host": f"w{rank}"})
    assert record_failure(run, world, "communication", 500, RanksDiverged("weights of rank 2 differ", [2]))
    record = read_json(run.failure)
    assert (record["rank"], record["host"], record["blamed"]) == (2, "w2", "w2")


def test_diverged_ranks_without_a_majority_blame_no_host(run: RunDir) -> None:
    assert record_failure(run, worlds(2)[0], "communication", 500, RanksDiverged("no majority", []))
    assert read_json(run.failure)["blamed"] is None


def test_late_consequence_does_not_replace_the_cause(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cause is recorded after a lost peer has looked for it and before the peer writes."""
    first, second = worlds(2)

    def slow(path: Path, data: str) -> bool:
        won = create_once(path, data)
        if "consequence" in path.name:
            assert record_failure(run, second, "forward", 3, ValueError("cause"))
        return won

    monkeypatch.setattr(records, "create_once", slow)
    record_failure(run, first, "communication", 3, PEER_LOST)
    assert read_json(run.failure)["message"] == "ValueError: cause"
    assert first_failure(run, first.nonce)["message"] == "ValueError: cause"


def test_forgotten_failure_of_a_reused_nonce_is_removed(run: RunDir) -> None:
    (world,) = worlds(1)
    record_failure(run, world, "forward", 3, ValueError("of the first attempt"))
    forget_failure(run, world.nonce, is_reused=True)
    assert first_failure(run, world.nonce) is None
    assert not run.failure.exists()
    assert record_failure(run, world, "forward", 3, ValueError("of the second"))


def test_unwritable_failure_record_does_not_raise(run: RunDir) -> None:
    run.ranks("n").parent.write_text("no folder")
    record = failure_record("n", "exception", "it broke", rank=0, host="w", phase="forward", step=1)
    assert not write_first(run, record)


def fail(world: World, path: Path) -> bool:
    return record_failure(RunDir(path), world, "forward", 1, ValueError(f"rank {world.rank}"))


def test_one_of_several_simultaneous_failures_is_recorded(run: RunDir) -> None:
    won = in_ranks(4, fail, run.path)
    # All ranks of one attempt have one nonce.
    assert won.count(True) == 1
    assert read_json(run.failure)["message"] == f"ValueError: rank {won.index(True)}"


def fail_or_lose(world: World, path: Path) -> bool:
    error = ValueError("cause") if world.rank == 2 else PEER_LOST
    return record_failure(RunDir(path), world, "forward", 1, error)


def test_cause_is_recorded_among_simultaneous_consequences(run: RunDir) -> None:
    in_ranks(4, fail_or_lose, run.path)
    assert read_json(run.failure)["message"] == "ValueError: cause"


def test_secrets_in_an_error_are_not_recorded(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBPASSWD", "hush-hush")
    try:
        raise ConnectionError("cannot log in with hush-hush at postgres://me:quiet@host/db")
    except ConnectionError as error:
        record_failure(run, World.single(), "start", 0, error)
    text = run.failure.read_text()
    assert "hush-hush" not in text
    assert "quiet" not in text
    assert "postgres://me:***@host/db" in read_json(run.failure)["message"]
    assert "ConnectionError" in read_json(run.failure)["traceback"]
