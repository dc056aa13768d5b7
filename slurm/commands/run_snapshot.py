"""Run a module of the toolkit in new processes, with the copy of the code in a run's folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from slurm.client.topology import scrub
from slurm.commands.common import warn
from toolkit.launch.launcher import rank_environment
from toolkit.launch.machines.layout import Machines
from toolkit.run.folder_trust import check_run
from toolkit.run.kept_code.code_snapshot import check_kept
from toolkit.run.kept_code.module_names import module_in
from toolkit.run.run_dir import RunDir, find_run


class SnapshotHost:
    """Implementation of toolkit.command.Host: functions of this program for commands of workloads."""

    def find_run(self, name: str) -> Path:
        return find_run(name).path

    def process(
        self, run_dir: Path, module: str, request: str, *earlier: str
    ) -> tuple[list[str], dict[str, str]]:
        (found,) = processes(RunDir(run_dir), module, request, earlier=earlier)
        return found


def absolute(path: str | None) -> str | None:
    """Return an absolute file name, because the code of a run may change the working folder."""
    return None if path is None else os.path.abspath(os.path.expanduser(path))


def processes(
    run: RunDir, module: str, request: str, procs: int = 1, *, earlier: Sequence[str] = ()
) -> list[tuple[list[str], dict[str, str]]]:
    """Return command line and environment of each process that runs a module for a run.

    earlier   names of the module in earlier versions, besides those in module_in
    """
    found = module_in(run, module, *earlier)
    # -P: otherwise Python would prefer code in the working directory to the run's own.
    command = [sys.executable, "-P", "-m", found or module, str(run.path), request]
    # Before the environment is copied: this adds the run's folder if --trust-folder is given.
    check_run(run)
    if run.code.exists():
        check_kept(run)
    else:
        warn([f"{run.code} is gone: today's code is used"])
    environ = scrub()
    # Injected faults are only for training.
    environ.pop("STK_FAULTS", None)
    environ["PYTHONDONTWRITEBYTECODE"] = "1"
    # A run that is older than the module uses the installed code.
    own = {} if found else {"PYTHONPATH": environ.get("PYTHONPATH", "")}
    nonce, machines = f"again-{uuid4().hex[:8]}", Machines.alone(procs)
    return [
        (command, {**rank_environment(run, nonce, rank, machines, environ), **own}) for rank in range(procs)
    ]
