"""Errors in a user's own command are reported with a correction; nothing is left behind."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml

import stk
from slurm.cli import main
from tests.toolkit.workloads.custom.bad_input.conftest import Refused, edit


@pytest.mark.parametrize(
    "old, new, key, right",
    [
        ("train.py", "trian.py", "train.yaml:2: task.run.1", "run: [python, trian.py]"),
        ("[python, train.py]", "[train.py]", "train.yaml:2: task.run.0", "run: [python, train.py]"),
        ("[python, train.py]", "[python train.py]", "train.yaml:2: task.run.0", "run: [python, train.py]"),
        ("[python, train.py]", "[./go.sh]", "train.yaml:2: task.run.0", "run: [bash, go.sh]"),
        ("[python, train.py]", "[bash, go.sh]", "train.yaml:2: task.run.1", "run: [bash, go.sh]"),
        ("train.py]", "../x.py]", "train.yaml:2: task.run.1", "is outside of"),
        ("[python, train.py]", "[]", "train.yaml:2: task.run", "run: [python, train.py]"),
        ("train.py]", "train.py], launch: every", "train.yaml:2: task.launch", "each, node"),
        ("py]}", "py]}\nparams: {a b: 1}", "train.yaml:3: params.a b", "lr: 0.001"),
        ("py]}", "py]}\nparams: [1]", "train.yaml:3: params", "mapping"),
        ("py]}", "py]}\ninputs: [nowhere]", "train.yaml:3: inputs.0", "there is no"),
        ("py]}", "py]}\ncode: [nowhere]", "train.yaml:3: code.0", "there is no"),
        ("py]}", "py]}\nmodel: {x: 1}", "train.yaml:3: model", "no such key"),
        ("run: [python, train.py]", "launch: each", "train.yaml:2: task.run", "is missing"),
        ("py]}", "py]}\nparams: {a: {b: 1}}", "train.yaml:3: params.a", ""),
        ("py]}", "py]}\ncode: [/]", "train.yaml:3: code.0", ""),
    ],
)
def test_invalid_experiment_of_a_command_is_refused_with_its_key(
    refused: Refused, old: str, new: str, key: str, right: str
) -> None:
    edit("train.yaml", old, new)
    said = refused("submit", "train.yaml", "--cluster", "local")
    assert f"{key}: " in said
    assert right in said


@pytest.mark.parametrize(
    "words, right",
    [
        (["--"], "stk submit -- python train.py"),
        (["--", "python", "trian.py"], "there is no"),
        (["--", "train.py"], "run: [python, train.py]"),
        (["--", "./train.py"], "./train.py is not executable (python ./train.py, or chmod +x ./train.py)"),
        (["--", "./program"], "chmod +x ./program"),
        (["--", "./"], "./ is a folder"),
        (["--nodes", "two", "--", "python", "train.py"], "resources.nodes"),
    ],
)
def test_invalid_command_line_is_refused(refused: Refused, words: list[str], right: str) -> None:
    assert right in refused("submit", "--cluster", "local", *words)


def test_fault_of_a_command_is_in_the_command_line_and_in_no_file(refused: Refused) -> None:
    said = refused("submit", "--cluster", "local", "--", "train.py")
    assert "command line: task.run.0: " in said
    assert ".yaml" not in said


def test_fault_of_a_command_in_python_is_not_in_the_command_line() -> None:
    with pytest.raises(stk.UserError) as raised:
        stk.submit(["train.py"], cluster="local")
    assert "task.run.0: " in str(raised.value)
    assert "command line" not in str(raised.value)


@pytest.mark.parametrize(
    "word, words",
    [
        ("python -m http.server --bind 'a, b'", "[python, -m, http.server, --bind, 'a, b']"),
        ("python train.py --epochs one", "[python, train.py, --epochs, one]"),
        ("train.py --epochs one", "[python, train.py, --epochs, one]"),
        ("./program --epochs one", "[./program, --epochs, one]"),
        (f"sh {'a' * 300}", f"[sh, {'a' * 300}]"),
    ],
)
@pytest.mark.parametrize("command", ["run", "submit", "sweep params.lr=1,2"])
def test_command_in_one_word_is_refused_with_its_words(
    refused: Refused, command: str, word: str, words: str
) -> None:
    said = refused(*command.split(), "--", word)
    right = shlex.join(yaml.safe_load(words))
    assert f"(run: {words}, or -- {right})" in said
    assert "Warnings" not in said


def test_program_with_a_space_in_its_name_is_accepted() -> None:
    Path("python train").touch(0o700)
    assert main(["plan", "--", "./python train"]) == 0


def test_script_that_the_setup_may_make_executable_is_accepted() -> None:
    assert main(["plan", "resources.setup=[chmod +x program]", "--", "./program"]) == 0


@pytest.mark.parametrize("words", ["./train.py", "bash ./program", "env ./program", "$HOME/program"])
def test_executable_script_and_one_behind_another_program_are_accepted(words: str) -> None:
    Path("train.py").chmod(0o700)
    assert main(["plan", "--", *words.split()]) == 0


@pytest.mark.parametrize("program, is_named", [("pyton", True), ("sh", False), ("/opt/of/the/hosts", False)])
def test_program_that_is_missing_here_is_named_but_not_refused(
    capfd: pytest.CaptureFixture[str], program: str, is_named: bool
) -> None:
    assert main(["plan", "--", program, "train.py"]) == 0
    assert (f"there is no program {program}" in capfd.readouterr().err) == is_named


@pytest.mark.parametrize(
    "words, told",
    [
        (["train.yaml", "--evaluate"], "only this program can score it"),
        (["mine.yaml", "--evaluate", "mine.py"], "cannot be scored on a file"),
    ],
)
def test_evaluation_that_can_never_work_is_refused(refused: Refused, words: list[str], told: str) -> None:
    assert told in refused("submit", *words)
