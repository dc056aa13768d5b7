"""The code snapshot of a run registers the workloads that it contains."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toolkit.support.tiny import tiny
from toolkit.registry import installed, task_kinds
from toolkit.run.create_run import create_run, fill_run, run_of
from toolkit.run.kept_code import code_snapshot
from toolkit.run.kept_code.code_snapshot import copy_code

ROOT = Path(__file__).parents[4]
_COPY = (
    "from pathlib import Path; from toolkit.run.kept_code.code_snapshot import copy_code; copy_code({}, {!r})"
)
_TELL = "from toolkit.registry import installed, task_kinds; print(*task_kinds())"


def python(code: str, *folders: Path) -> str:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [sys.executable, "-P", "-c", code]
    return subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("kind", ["dist-info", "egg-info"])
def test_a_copy_of_a_copy_registers_the_same_workloads(tmp_path: Path, kind: str) -> None:
    """Both forms of an installation: an editable one has its name and version in another file."""
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    for folder in (first, second, third):
        folder.mkdir()
    used = [next(iter(task_kinds()))]
    workload = installed(used[0]).workload
    copy_code(first, used)
    if kind == "egg-info":
        for metadata in list(first.glob("*.dist-info")):
            (metadata / "METADATA").rename(metadata / "PKG-INFO")
            metadata.rename(first / f"{metadata.name.partition('-')[0]}.egg-info")
    python(_COPY.format(f"Path({str(second)!r})", used), first)
    python(_COPY.format(f"Path({str(third)!r})", used), second)
    assert python(_TELL, third).split() == [task.kind for task in workload.tasks]


def test_a_copy_leaves_out_unused_workloads(tmp_path: Path) -> None:
    copy_code(tmp_path / "code", ())
    assert python(_TELL, tmp_path / "code").split() == []


def test_an_interrupted_copy_of_shared_code_leaves_only_the_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = tiny(tmp_path)
    run = run_of(experiment, tmp_path / "runs")
    fill_run(run, experiment, shared_code=create_run(experiment, tmp_path / "shared").code)
    before = sorted(run.path.iterdir())

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(code_snapshot, "link_or_copy", interrupt)
    with pytest.raises(KeyboardInterrupt):
        create_run(experiment, run.path.parent)
    assert sorted(run.path.iterdir()) == before
    assert run.code.is_symlink()
