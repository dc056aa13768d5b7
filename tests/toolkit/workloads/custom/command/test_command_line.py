"""`stk run -- COMMAND`: the command line becomes an experiment that is read like a file."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from slurm import cli
from slurm.commands.command_line import with_file
from slurm.commands.common import TAKE_WORDS
from tests.slurm.support.user import User
from toolkit.config import load


@pytest.mark.parametrize("name", TAKE_WORDS)
def test_command_is_replaced_by_an_experiment_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = with_file([name, "--json", "resources.nodes=2", "--", "python", "train.py", "--json"])
    assert (words[0], words[2:]) == (name, ["--json", "resources.nodes=2"])
    experiment = load(Path(words[1]), ["resources.nodes=2"])
    assert experiment.task.run == ("python", "train.py", "--json")
    assert experiment.resources.nodes == 2
    assert list(tmp_path.iterdir()) == []


def test_arguments_without_a_command_are_unchanged() -> None:
    assert with_file(["run", "train.yaml"]) == ["run", "train.yaml"]
    assert with_file(["logs", "--", "-x"]) == ["logs", "--", "-x"]


def test_file_is_the_same_only_for_the_same_command() -> None:
    first, same, other = (with_file(["sweep", "--", "python", "a.py", each])[1] for each in ("1", "1", "2"))
    assert first == same != other


def test_error_for_a_number_of_processes_names_no_key_that_commands_lack(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["run", "--procs", "0", "--", "echo"]) == 2
    answer = capsys.readouterr().err
    assert "--procs is 0: it must be from 1 to " in answer
    assert "train." not in answer


@pytest.mark.parametrize("key", ["lr", "optimizer.lr", "seed"])
def test_error_for_an_unknown_key_of_a_command_lists_valid_keys(
    capsys: pytest.CaptureFixture[str], key: str
) -> None:
    assert cli.main(["plan", f"{key}=3", "--", "echo"]) == 2
    answer = capsys.readouterr().err
    assert "there is no such key (valid: " in answer
    assert "params" in answer


@pytest.mark.parametrize("source", ["file", "pipe", "nothing"])
def test_standard_input_that_a_command_does_not_get_is_named(source: str, tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("1,2")
    reading, writing = os.pipe()
    os.write(writing, b"1,2" if source == "pipe" else b"")
    os.close(writing)
    with open(tmp_path / "rows") as file, open(reading) as pipe:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "slurm", "plan", "--", "cat"],
            stdin=file if source == "file" else pipe,
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )
    assert done.stderr.count("does not get this standard input") == (source == "pipe")


@pytest.mark.parametrize(
    "given, right",
    [
        ("submit python train.py", "stk submit -- python train.py"),
        ("run python train.py --epochs 3", "stk run -- python train.py --epochs 3"),
        ("submit --nodes 2 train.py --lr 0.1", "stk submit --nodes 2 -- python train.py --lr 0.1"),
        ("submit python -m train 'a b'", "stk submit -- python -m train 'a b'"),
        ("run missing.py --epochs 3", "stk run -- python missing.py --epochs 3"),
        ("run /nowhere/python train.py", "stk run -- /nowhere/python train.py"),
        ("run /nowhere/train.py --x", "stk run -- python /nowhere/train.py --x"),
        ("submit train.sh", "stk submit -- bash train.sh"),
        ("run env -i python", "stk run -- env -i python"),
        ("run --trust-folder train.py --x", "stk run --trust-folder -- python train.py --x"),
        ("run --json env x --y env", "stk run --json -- env x --y env"),
        ("submit --time=5 env x env", "stk submit --time=5 -- env x env"),
        ("sweep env x a=1,2 --name env", "stk sweep a=1,2 -- env x --name env"),
        ("sweep --name env env --x", "stk sweep --name env -- env --x"),
        (
            "sweep --name a train.py params.lr=1,2 --x",
            "stk sweep --name a params.lr=1,2 -- python train.py --x",
        ),
    ],
)
def test_own_command_without_dashes_is_refused_with_the_right_command_line(
    user: User, given: str, right: str
) -> None:
    user.write("train.py", "import torch\nstep = 0\nmodel = torch.nn.Linear(2, 2)\n")
    user.write("train.sh", "#!/bin/sh\npython train.py\n")
    before = user.listing
    said = user.refused(*shlex.split(given))
    assert said.endswith(f": {right}\n")
    assert said.count("\n") == 1
    assert user.listing == before
