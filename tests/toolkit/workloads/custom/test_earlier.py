"""What an earlier attempt has left on a host is killed, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolkit.files import write_json
from toolkit.run.run_dir import RunDir
from toolkit.workloads.custom.command import program


def test_only_processes_of_a_replaced_attempt_are_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDir(tmp_path)
    write_json(run.fence, {"nonce": "new", "earlier": ["old"]})
    of_run = {"STK_RUN_DIR": str(tmp_path), "STK_NONCE": "old"}
    processes = {1: of_run, 2: of_run | {"STK_NONCE": "new"}, 3: of_run | {"STK_RUN_DIR": "/other"}, 4: {}}
    # A finished attempt of an earlier folder, or the same path in another container; a script that a person
    # started; the shell that this attempt is in.
    processes |= {5: of_run | {"STK_NONCE": "unknown"}, 6: {"STK_RUN_DIR": str(tmp_path)}, 7: of_run}
    killed: list[int] = []
    monkeypatch.setattr(program, "environments", processes.items)
    monkeypatch.setattr(program, "ancestors", lambda: [7])
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append(pid))
    program.end_earlier_processes(run)
    assert killed == [1]
