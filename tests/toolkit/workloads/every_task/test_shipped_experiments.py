"""Every experiment in configs/ can be planned; only files and runs of the user are missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.slurm.support.user import User
from tests.support.registering import ROOT
from tests.toolkit.workloads.every_task.test_json_schema import CONFIGS, EXPERIMENTS


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: str(path.relative_to(CONFIGS)))
def test_shipped_experiment_is_planned_and_its_missing_files_are_named(
    path: Path, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = str(user.root / "absent")
    for variable in ("STK_DATA_DIR", "STK_REPAIR_RUN", "STK_START_FROM_CHECKPOINT"):
        monkeypatch.setenv(variable, absent)
    answer = user.stk("plan", path, "--json")
    plan = json.loads(answer.out)
    assert plan["script"].startswith("#!")
    assert f"--job-name={plan['run_id']}.0\n" in plan["script"]
    faults = [line for line in answer.err.splitlines() if line.startswith("  - ")]
    assert (answer.code, faults != []) == (2, True)
    assert [line for line in faults if absent not in line] == []


def test_an_experiment_loads_only_the_workload_of_its_task_and_no_torch() -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom toolkit.config.loading import load_with_origins\n"
        "load_with_origins(Path('configs/docnn.yaml'))\n"
        "print({'torch', 'numpy'} & sys.modules.keys(),"
        " {name.split('.')[2] for name in sys.modules if name.startswith('toolkit.workloads.')})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "set() {'text_classification'}\n"
