"""What tests of an existing sweep share: asking for it, and letting its runs finish."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.slurm.support.user import CONFIG, User
from toolkit.run.run_dir import RunDir
from toolkit.sweeps.folder import SweepDir


def ask(user: User, *arguments: object) -> Any:
    """What --json prints; the command must succeed."""
    return json.loads(user.told("sweep", *arguments, "--json"))


def sweep_of(user: User, values: str) -> Path:
    return user.write("lrs.yaml", f"{CONFIG}sweep: {{name: lrs, parameters: {{optimizer.lr: {values}}}}}\n")


def folder(user: User, name: str = "tiny") -> SweepDir:
    return SweepDir(user.experiments / "sweeps" / name)


def finish(line: dict[str, Any], accuracy: float, **more: object) -> None:
    """Let a run have finished with this accuracy."""
    metrics = {"validation": {"accuracy": accuracy, "loss": 1 - accuracy}}
    result = {"state": "finished", "step": 4, "seconds": 60.0, "metrics": metrics, **more}
    RunDir(Path(line["run_dir"])).result.write_text(json.dumps(result))
