"""What real jobs, steps and shells of Slurm had in their environments."""

from __future__ import annotations

import json
from pathlib import Path

ENVIRONMENTS: dict[str, dict[str, str]] = json.loads(
    (Path(__file__).parent / "recorded" / "environments.json").read_text()
)
