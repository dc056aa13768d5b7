"""Each of our workloads is taken away alone: the core and the others do not miss it.

`tests/without_workloads.py` runs the core's tests without all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from stk_toy.texts.example import write_example

from tests.package.test_laws import CORE
from tests.support.registering import ROOT, TOY, register

_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKLOADS: dict[str, str] = _PROJECT["entry-points"]["slurm_toolkit.workloads"]
#: The submitter, which imports of the library what a login node needs.
_MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in CORE
    if path.is_relative_to(ROOT / "slurm") and path.stem != "__main__"
]
_CODE = """\
import importlib, json, sys

gone, modules, config = sys.argv[1:]


class TakenAway:
    def find_spec(self, name, path=None, target=None):
        if f"{name}.".startswith(f"{gone}."):
            raise ModuleNotFoundError(f"{name} is taken away")


sys.meta_path.insert(0, TakenAway())
for each in json.loads(modules):
    importlib.import_module(each)
from slurm.cli import main
from toolkit import registry

assert not main(["plan", config])
workloads = {registry.installed(kind).name for kind in registry.task_kinds()}
print("\\n" + json.dumps([sorted(workloads), sorted(registry.commands()), dict(registry.unloaded())]))
"""


@pytest.mark.parametrize("gone", WORKLOADS)
def test_core_and_other_workloads_work_without_each_workload(gone: str, tmp_path: Path) -> None:
    package = WORKLOADS[gone].partition(":")[0].rpartition(".")[0]
    register(ROOT, tmp_path / "site", is_wanted=lambda code: not code.startswith(f"{package}."))
    register(TOY, tmp_path / "site")
    (tmp_path / "texts").mkdir()
    config = write_example(tmp_path / "texts")
    paths = [str(tmp_path / "site"), str(ROOT), str(TOY)]
    done = subprocess.run(
        [sys.executable, "-P", "-c", _CODE, package, json.dumps(_MODULES), str(config)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    workloads, commands, unloaded = json.loads(done.stdout.splitlines()[-1])
    assert workloads == sorted({*WORKLOADS, "toy"} - {gone})
    assert gone not in commands
    assert unloaded == {}
