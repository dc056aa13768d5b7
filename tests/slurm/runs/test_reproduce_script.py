"""`stk reproduce`: the script repeats a run in a clean shell, and refuses where something has changed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from slurm.runs.reproduce_script import gather, script
from tests.slurm.support.user import User, reviews, user_in
from tests.support.patience import PATIENCE_S
from toolkit.files import append_json_line
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import MANIFEST, WEIGHTS, RunDir


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[User, RunDir]]:
    """A user with a finished run, in a folder with a hostile name."""
    root = tmp_path_factory.mktemp("repro") / "it's a $HOME"
    root.mkdir()
    with user_in(root) as user:
        answer = user.call("run", "tiny.yaml")
        assert answer.code == 0, answer.err
        yield user, user.run()


def bash(script: Path, *arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """The script in a clean shell: another home, another working folder, nothing of ours."""
    return subprocess.run(
        [shutil.which("bash", path=os.defpath) or "bash", str(script), *arguments],
        cwd=cwd,
        env={"PATH": os.defpath, "HOME": str(cwd), **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


@pytest.mark.slow
def test_the_script_makes_the_same_weights_bit_for_bit_in_a_clean_shell(
    trained: tuple[User, RunDir], tmp_path: Path
) -> None:
    user, run = trained
    answer = user.stk("reproduce", run.run_id, "--output", tmp_path / "repeat.sh")
    assert (answer.code, answer.err) == (0, "")
    done = bash(tmp_path / "repeat.sh", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    again = RunDir(tmp_path / "repeated" / run.run_id)
    assert (again.best / WEIGHTS).read_bytes() == (run.best / WEIGHTS).read_bytes()
    assert (again.last / WEIGHTS).read_bytes() == (run.last / WEIGHTS).read_bytes()
    assert f"stk diff {run.path} {again.path}" in done.stderr


def test_a_data_file_that_has_changed_is_named(trained: tuple[User, RunDir], tmp_path: Path) -> None:
    user, run = trained
    text = script(gather(run))
    table = user.root / "reviews.tsv"
    table.write_text(reviews(100))
    try:
        assert f"was trained on other contents of {table}" in user.refused("reproduce", run.run_id)
        (tmp_path / "repeat.sh").write_text(text)
        done = bash(tmp_path / "repeat.sh", cwd=tmp_path)
        assert done.returncode == 2
        assert "data have changed or are gone" in done.stderr
        assert not (tmp_path / "repeated").exists()
    finally:
        table.write_text(reviews())


def test_a_data_file_that_is_gone_is_named(trained: tuple[User, RunDir]) -> None:
    user, run = trained
    table = user.root / "reviews.tsv"
    table.unlink()
    try:
        said = user.refused("reproduce", run.run_id)
        assert str(table) in said
    finally:
        table.write_text(reviews())


@pytest.mark.parametrize("path", ["plain", "a b", "a\\b", "line\nbreak", "$HOME `ls` 'x'"])
def test_script_handles_any_file_name(trained: tuple[User, RunDir], tmp_path: Path, path: str) -> None:
    _, run = trained
    file = tmp_path / path
    file.write_text("text")
    sha256 = hashlib.sha256(b"text").hexdigest()
    facts = replace(gather(run), sources=((file, sha256),), torch=None)
    (tmp_path / "repeat.sh").write_text(script(facts))
    done = bash(tmp_path / "repeat.sh", "no-such-command", cwd=tmp_path)
    assert "changed" not in done.stderr
    assert "no-such-command" in done.stderr
    file.write_text("another")
    assert "data have changed" in bash(tmp_path / "repeat.sh", cwd=tmp_path).stderr


def test_an_edited_config_is_refused_by_the_script(trained: tuple[User, RunDir], tmp_path: Path) -> None:
    _, run = trained
    copy = RunDir(tmp_path / run.run_id)
    shutil.copytree(run.path, copy.path, symlinks=True)
    (tmp_path / "repeat.sh").write_text(script(gather(copy)))
    copy.config.write_text(copy.config.read_text().replace("seed: 0", "seed: 1", 1))
    done = bash(tmp_path / "repeat.sh", "plan", cwd=tmp_path)
    assert done.returncode == 2
    assert "it was edited" in done.stderr


def test_script_refuses_to_write_into_the_run_itself(trained: tuple[User, RunDir], tmp_path: Path) -> None:
    _, run = trained
    (tmp_path / "repeat.sh").write_text(script(gather(run)))
    done = bash(tmp_path / "repeat.sh", cwd=tmp_path, STK_EXPERIMENT_DIR=str(run.path.parent))
    assert done.returncode == 2
    assert "holds the run itself" in done.stderr


def test_reproduce_warns_if_the_prepared_data_are_missing(
    trained: tuple[User, RunDir], tmp_path: Path
) -> None:
    user, run = trained
    prepared = user.root / "prepared"
    prepared.rename(tmp_path / "prepared")
    try:
        answer = user.stk("reproduce", run.run_id)
        assert answer.code == 0
        assert "prepared data" in answer.err
    finally:
        # Digests of the sources are remembered there.
        shutil.rmtree(prepared, ignore_errors=True)
        (tmp_path / "prepared").rename(prepared)


def test_initial_weights_changed_since_the_run_began_are_refused(trained: tuple[User, RunDir]) -> None:
    user, run = trained
    weights = run.best / WEIGHTS
    copy = user.root / "begin.safetensors"
    shutil.copy(weights, copy)
    begun = create_run(user.experiment(f"train.start_from_checkpoint={copy}"), user.experiments)
    append_json_line(begun.attempts, {"attempt": 1, "time_start": 1000.0})
    assert f"train.start_from_checkpoint: {copy} was modified on" in user.refused("reproduce", begun.run_id)
    assert user.stk("reproduce", begun.run_id, "--force").code == 0


def test_a_config_that_cannot_be_composed_again_is_refused(trained: tuple[User, RunDir]) -> None:
    user, _ = trained
    odd = create_run(user.experiment("seed=5", r"resources.comment=\${HOME}"), user.experiments)
    assert "another meaning in an experiment file" in user.refused("reproduce", odd.run_id)


@pytest.mark.parametrize(
    "said",
    [
        "2.5\ntouch was-here\n#",
        "2.5\rtouch was-here",
        "$(touch was-here)",
        "`touch was-here`",
        "'; touch was-here; '",
        '"; touch was-here; "',
        "@RUN@",
        "2.5+cu121",
        "9" * 4000,
        ["2.5"],
    ],
)
def test_no_version_in_a_manifest_is_executed(
    trained: tuple[User, RunDir], tmp_path: Path, said: object
) -> None:
    _, run = trained
    manifest = run.checkpoint(run.checkpoint_steps()[-1]) / MANIFEST
    before = manifest.read_text()
    manifest.write_text(json.dumps({**json.loads(before), "torch": said}))
    try:
        text = script(gather(run))
    finally:
        manifest.write_text(before)
    assert ("2.5+cu121" in text) == (said == "2.5+cu121")
    # What comes behind it takes its time, and knows nothing of versions.
    (tmp_path / "part.sh").write_text(text[: text.index("# Check that the config")])
    done = bash(tmp_path / "part.sh", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("was-here"))


def test_a_script_does_not_execute_what_another_user_may_write(
    trained: tuple[User, RunDir], tmp_path: Path
) -> None:
    _, run = trained
    (tmp_path / "repeat.sh").write_text(script(gather(run)))
    worker = run.code / "toolkit" / "training" / "worker.py"
    worker.chmod(0o666)
    try:
        done = bash(tmp_path / "repeat.sh", "run", cwd=tmp_path)
    finally:
        worker.chmod(0o644)
    assert done.returncode == 2
    assert "worker.py" in done.stderr
    assert not (tmp_path / "repeated").exists()
