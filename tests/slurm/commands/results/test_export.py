"""`stk export` writes what others need to use a finished run."""

from __future__ import annotations

import compileall
import os
import shutil
from pathlib import Path

import pytest

from tests.slurm.support.user import User
from toolkit.analysis.export import export_run
from toolkit.analysis.prediction.load import load_model
from toolkit.run import folder_trust
from toolkit.run.run_dir import WEIGHTS, RunDir

#: Names in the folder, besides those of the code.
KEPT = {"config.yaml", "result.json", "code", "checkpoints"}


@pytest.fixture
def run(finished: RunDir, tmp_path: Path) -> RunDir:
    """A copy, to be damaged."""
    return RunDir(Path(shutil.copytree(finished.path, tmp_path / finished.run_id, symlinks=True)))


def test_training_state_and_logs_are_left_out(user: User, finished: RunDir, tmp_path: Path) -> None:
    folder = tmp_path / "slim"
    user.call("export", finished.run_id, str(folder))
    assert {path.name for path in folder.iterdir()} == KEPT
    (checkpoint,) = [path for path in (folder / "checkpoints").iterdir() if not path.is_symlink()]
    assert checkpoint.name == finished.best.resolve().name
    held = {path.name: path.stat().st_size for path in checkpoint.iterdir()}
    assert held["training.safetensors"] < 100 < held[WEIGHTS]
    assert RunDir(folder).best.resolve() == checkpoint.resolve()
    assert "exported" in user.refused("resume", folder), "it cannot train"


@pytest.mark.parametrize("place", ["exists", "missing/slim", "{run}/slim", "link/slim"])
def test_a_folder_that_cannot_be_made_is_refused(user: User, run: RunDir, tmp_path: Path, place: str) -> None:
    (tmp_path / "exists").mkdir()
    (tmp_path / "link").symlink_to(run.path)
    before = sorted(tmp_path.rglob("*"))
    answer = user.call("export", str(run.path), str(tmp_path / place.format(run=run.path)))
    assert answer.code == 2
    assert "Traceback" not in answer.err
    assert sorted(tmp_path.rglob("*")) == before


def test_damaged_weights_are_not_exported(user: User, run: RunDir, tmp_path: Path) -> None:
    weights = run.best / WEIGHTS
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    answer = user.call("export", str(run.path), str(tmp_path / "slim"))
    assert answer.code != 0
    assert str(run.best.resolve()) in answer.err
    assert not (tmp_path / "slim").exists()


def test_code_that_others_may_write_is_exported_only_with_trust_folder(
    user: User, run: RunDir, tmp_path: Path
) -> None:
    run.code.chmod(0o777)
    answer = user.call("export", str(run.path), str(tmp_path / "slim"))
    assert answer.code == 2
    assert "--trust-folder" in answer.err
    assert not (tmp_path / "slim").exists()
    assert user.call("export", str(run.path), str(tmp_path / "slim"), "--trust-folder").code == 0


def test_the_result_is_trusted_under_a_umask_that_lets_others_write(run: RunDir, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = export_run(run, tmp_path / "slim")
        # `stk.load` imports it, and Python keeps there what it compiles.
        compileall.compile_dir(made.code / "toolkit", maxlevels=0, quiet=1)
        folder_trust.check_run(made)
    finally:
        os.umask(before)


def test_compiled_code_is_left_out(user: User, run: RunDir, tmp_path: Path) -> None:
    compiled = run.code / "toolkit" / "__pycache__"
    compiled.mkdir(exist_ok=True)
    (compiled / "task.pyc").write_bytes(b"of another Python")
    user.call("export", str(run.path), str(tmp_path / "slim"))
    assert not list((tmp_path / "slim").rglob("*.pyc"))
    assert (tmp_path / "slim" / "code" / "toolkit").is_dir()


def test_a_run_whose_code_is_gone_is_exported_and_used_with_a_warning(
    user: User, run: RunDir, tmp_path: Path
) -> None:
    shutil.rmtree(run.code)
    slim = tmp_path / "slim"
    exported = user.stk("export", run.path, slim)
    predicted = user.call("predict", slim, user.write("rows.jsonl", '{"x": 1}\n'))
    assert (exported.code, predicted.code) == (0, 0), predicted.err
    assert predicted.out.count("\n") == 1
    for answer, code in ((exported, run.code), (predicted, RunDir(slim).code)):
        assert answer.err.startswith(f"warning: {code} is gone"), answer.err
    with pytest.warns(UserWarning, match="is gone: today's code is used"):
        load_model(slim)
