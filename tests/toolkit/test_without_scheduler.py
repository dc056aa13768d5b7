"""The training library works if the scheduler package is neither importable nor registered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S
from tests.support.registering import ROOT, TOY, register
from tests.toolkit.support.tiny import write_experiment
from toolkit.files import read_json

#: Makes every import of the scheduler package fail.
_WITHOUT = "import sys; sys.modules['slurm'] = None; import runpy; "
_RUN = _WITHOUT + "runpy.run_module('toolkit.training.worker', run_name='__main__', alter_sys=True)"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment in which the installed project registers nothing, and the toy workload its tasks."""
    site = tmp_path / "site"
    register(ROOT, site, is_wanted=lambda code: False)
    register(TOY, site)
    (site / "toolkit").symlink_to(ROOT / "toolkit")
    return {**os.environ, "PYTHONPATH": f"{site}:{TOY}"}


def test_an_experiment_with_resources_trains_and_keeps_them_without_slurm(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    config = write_experiment(tmp_path)
    resources = "resources: {partition: gpu, time: '1:00:00', unheard_of: 3}\n"
    config.write_text(config.read_text() + resources)
    command = [sys.executable, "-c", _RUN, str(config), "train.epochs=1"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "experiments").iterdir()
    assert read_json(run / "result.json")
    assert "unheard_of: 3" in (run / "config.yaml").read_text()
