"""A finished run at work again: a module of the toolkit in processes of its own, with the run's own code."""

from __future__ import annotations

import sys
from uuid import uuid4

from slurm.topology import scrub
from toolkit.launch import rank_environment
from toolkit.machines.layout import Machines
from toolkit.rundir import RunDir


def command(module: str, target: RunDir, request: str) -> list[str]:
    """The command line of a module that is asked something about a run."""
    # -P: or Python would prefer the code in the working directory to the run's own.
    return [sys.executable, "-P", "-m", module, str(target.path), request]


def environments(module: str, target: RunDir, procs: int = 1) -> list[dict[str, str]]:
    """The environment of each process of it."""
    environ = scrub()
    # Faults are for a run.
    environ.pop("STK_FAULTS", None)
    environ["PYTHONDONTWRITEBYTECODE"] = "1"
    nonce, machines = f"again-{uuid4().hex[:8]}", Machines.alone(procs)
    made = [rank_environment(target, nonce, rank, machines, environ) for rank in range(procs)]
    # For a run that is older than the module there is the code that is installed.
    own = {} if _has(target, module) else {"PYTHONPATH": environ.get("PYTHONPATH", "")}
    return [{**environment, **own} for environment in made]


def _has(target: RunDir, module: str) -> bool:
    path = target.code.joinpath(*module.split("."))
    return path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()
