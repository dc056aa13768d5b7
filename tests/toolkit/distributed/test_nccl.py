"""NCCL is set up before the process group, and what the user has set stays."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.toolkit.support.ranks import run_ranks
from toolkit.distributed.nccl import connecting, set_up_nccl
from toolkit.exit_codes import ExitCode
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World


def test_nccl_is_set_to_end_the_process_and_to_dump_a_trace(tmp_path: Path) -> None:
    environ: dict[str, str] = {}
    set_up_nccl(RunDir(tmp_path), "start", 1000.0, environ)
    assert environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] == "3"
    assert environ["TORCH_NCCL_DUMP_ON_TIMEOUT"] == "1"
    assert int(environ["TORCH_FR_BUFFER_SIZE"]) > 0
    assert Path(environ["TORCH_FR_DUMP_TEMP_FILE"]).parent == RunDir(tmp_path).logs


def test_nccl_heartbeat_timeout_is_longer_than_the_collective_timeout(tmp_path: Path) -> None:
    for timeout_s in (10.0, 5000.0):
        environ: dict[str, str] = {}
        set_up_nccl(RunDir(tmp_path), "start", timeout_s, environ)
        assert int(environ["TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"]) > timeout_s


def connect_for_ever(world: World, folder: Path) -> None:
    with connecting(RunDir(folder), world, 0.01):
        threading.Event().wait()


def test_a_rank_that_never_connects_fails_with_the_variable_to_set(tmp_path: Path) -> None:
    (ended,) = run_ranks(1, connect_for_ever, tmp_path)
    assert ended.exit_status == ExitCode.FAILED
    failure = read_json(RunDir(tmp_path).failure)
    assert (failure["class"], "NCCL_SOCKET_IFNAME" in failure["message"]) == ("rendezvous", True)


def test_nccl_variables_that_the_user_has_set_are_kept(tmp_path: Path) -> None:
    environ = {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1", "TORCH_FR_BUFFER_SIZE": "0"}
    set_up_nccl(RunDir(tmp_path), "start", 600.0, environ)
    assert environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] == "1"
    assert environ["TORCH_FR_BUFFER_SIZE"] == "0"
