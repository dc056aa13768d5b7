"""Sweeps of the user's own code on a cluster: each run begins with its own files, and edits are named."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import User, user_in
from tests.toolkit.workloads.custom.own_digits import DIGITS, write_digits
from toolkit.run.run_dir import RunDir
from toolkit.sweeps.folder import SweepDir, read_record

OTHER = "other code than those that begin now, which differs in digits.py"


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    """A user with a project of three functions, and a pretend Slurm."""
    write_digits(tmp_path / "project")
    FakeSlurm(tmp_path / "project")
    with user_in(tmp_path / "project") as user:
        yield user


def sweep(user: User, *words: str) -> list[RunDir]:
    """The runs of a sweep of the digits."""
    answer = user.stk("sweep", "digits.yaml", *words, "--json")
    assert answer.code == 0, answer.err
    found: list[dict[str, Any]] = json.loads(answer.out)["runs"]
    return [RunDir(Path(line["run_dir"])) for line in found]


def edit() -> None:
    with open("digits.py", "a") as stream:
        stream.write("# edited\n")


def test_files_of_one_name_stay_those_of_their_own_runs(user: User) -> None:
    for folder in ("v1", "v2"):
        shutil.copytree("my_project", f"{folder}/my_project")
        shutil.copy("digits.py", f"{folder}/net.py")
        Path(folder, "net.py").write_text(f"{Path('digits.py').read_text()}# {folder}\n")
    runs = sweep(user, "task=v1/net.py,v2/net.py", "seed=1,2")
    ends = [(run.code / "project" / "net.py").read_text()[-3:] for run in runs]
    assert ends == ["v1\n", "v1\n", "v2\n", "v2\n"]
    assert len({run.code.resolve() for run in runs}) == 2


def test_runs_that_are_left_out_are_named_where_others_begin_with_edited_code(user: User) -> None:
    first, _ = sweep(user, "model.hidden=8,16")
    first.result.write_text("{}")
    edit()
    assert OTHER not in user.stk("sweep", "digits.yaml", "model.hidden=8,16").err
    more = user.stk("sweep", "digits.yaml", "model.hidden=8,16,24")
    assert f"2 runs have {OTHER}" in more.err


def test_runs_that_were_left_for_later_begin_with_edited_code_under_a_warning(user: User) -> None:
    first, _ = sweep(user, "model.hidden=8,16", "--at-most", "1")
    edit()
    assert f"{first.run_id} has {OTHER}" in user.stk("sweep", "resume", "digits").err


def test_a_metric_may_have_a_dot(user: User) -> None:
    Path("digits.py").write_text(DIGITS.replace('"accuracy"', '"f1.macro"'))
    sweep(user, "seed=1,2", "evaluation.metric=f1.macro:max")
    record = read_record(SweepDir(user.experiments / "sweeps" / "digits"))
    assert (record.metric, record.goal) == ("validation.f1.macro", "max")


def test_the_script_of_each_run_is_looked_for_before_anything_is_submitted(user: User) -> None:
    user.write("train.yaml", "name: own\ntask: {kind: command, run: [python, a.py]}\n")
    user.write("a.py", "print()\n")
    answer = user.stk(
        "sweep", "train.yaml", "task.run=[python,a.py],[python,missing.py]", "--cluster", "slurm"
    )
    assert (answer.code, user.runs) == (2, [])
    assert "missing.py" in answer.err


def test_another_command_is_refused_and_more_parameters_of_the_same_one_are_not(user: User) -> None:
    user.write("a.py", "print()\n")
    words = ["--name", "sw", "--cluster", "slurm", "--", "python", "a.py"]
    assert user.stk("sweep", "params.lr=1,2", *words).code == 0
    answer = user.stk("sweep", "params.lr=1,2", *words, "--epochs", "3")
    assert answer.code == 2
    assert "params.KEY=VALUE" in answer.err
    more = user.stk("sweep", "params.lr=1,2", "params.epochs=3", *words)
    assert more.code == 0, more.err
    assert len(user.runs) == 4


def test_seeds_of_a_command_are_refused_with_the_key_that_works(user: User) -> None:
    user.write("a.py", "print()\n")
    words = ["--cluster", "slurm", "--", "python", "a.py"]
    answer = user.stk("sweep", "--seeds", "1,2", *words)
    assert (answer.code, user.runs) == (2, [])
    assert "params.seed=1,2" in answer.err
    assert user.stk("sweep", "params.seed=1,2", *words).code == 0


def test_examples_of_a_sweep_of_a_command_can_be_pasted(user: User) -> None:
    user.write("train.py", "print()\n")
    for told in (user.told("sweep", "--help"), user.refused("sweep", "--")):
        example = shlex.split(told.rpartition("stk sweep ")[2])
        assert "2 runs" in user.told("sweep", "--dry-run", *example)
