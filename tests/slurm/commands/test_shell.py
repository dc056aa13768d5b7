"""What all commands have in common in a shell: help, exit codes, JSON, colours, width."""

from __future__ import annotations

import argparse
import os
import pty
import re
import subprocess
import sys

import pytest

from slurm.commands.parser import make_parser
from tests.slurm.support.user import User
from toolkit.run.create_run import create_run

(_SUB_PARSERS,) = (each for each in make_parser()._actions if isinstance(each, argparse._SubParsersAction))
COMMANDS: dict[str, argparse.ArgumentParser] = dict(_SUB_PARSERS.choices)
#: Commands that do something with runs, by what else they need.
WITH_RUNS = {
    name: {"replay": ["--step", "1"], "diff": ["other"], "logs": ["--list"], "export": ["new"]}.get(name, [])
    for name, parser in COMMANDS.items()
    if any(action.metavar == "RUN" and not action.option_strings for action in parser._actions)
}
_ESCAPE = re.compile(r"\x1b\[")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_explains_every_argument(user: User, name: str) -> None:
    answer = user.stk(name, "--help")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith(f"usage: stk {name}")
    assert not _ESCAPE.search(answer.out)
    for action in COMMANDS[name]._actions:
        if action.help == argparse.SUPPRESS:
            continue
        for word in action.option_strings or [str(action.metavar or action.dest)]:
            assert word in answer.out
        assert action.help or isinstance(action, argparse._SubParsersAction), action.dest


@pytest.mark.parametrize("name", COMMANDS)
def test_unknown_option_exits_with_2_and_the_usage_of_the_command(user: User, name: str) -> None:
    answer = user.stk(name, "--no-such-option")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"usage: stk {name}")
    assert f"stk {name} --help" in answer.err


@pytest.mark.parametrize("name", WITH_RUNS)
def test_unknown_run_exits_with_2_and_changes_nothing(user: User, name: str) -> None:
    """Nothing on standard output, a message without a stack trace on the other, and nothing made."""
    options = ["--json"] if "--json" in COMMANDS[name]._option_string_actions else []
    before = user.listing
    answer = user.stk(name, "unknown", *WITH_RUNS[name], *options)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: no run 'unknown'")
    assert "Traceback" not in answer.err
    assert user.listing == before


@pytest.mark.parametrize("name, values", [("submit", []), ("sweep", ["seed=1,2"]), ("prepare", [])])
def test_missing_slurm_exits_with_3(user: User, stubs: object, name: str, values: list[str]) -> None:
    answer = user.stk(name, user.config, *values, "--cluster", "slurm", "--json")
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith("error: ")
    assert "scontrol is not on PATH" in answer.err
    assert not user.experiments.exists()


@pytest.fixture
def cleanable(user: User) -> User:
    """A user with a run of which something can go; its name is long."""
    run = create_run(user.experiment(f"name={'long' * 12}"), user.experiments)
    for step in (10, 20, 30):
        run.checkpoint(step).mkdir(parents=True)
    run.result.write_text('{"state": "finished", "step": 30, "best": {"step": 30}, "metrics": {}}')
    return user


def on_terminal(user: User, *arguments: str, **environ: str) -> str:
    """What a command writes to a terminal."""
    here, there = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "slurm", *arguments],
        cwd=user.root,
        env={**os.environ, "TERM": "xterm-256color", **environ},
        stdin=there,
        stdout=there,
        stderr=there,
    )
    os.close(there)
    seen = b""
    try:
        while block := os.read(here, 4096):
            seen += block
    except OSError:
        # So ends a terminal whose last process has gone.
        pass
    process.wait()
    os.close(here)
    return seen.decode()


@pytest.mark.parametrize("command", ["status", "clean"])
def test_colours_are_used_only_on_terminals_without_no_color(
    cleanable: User, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    options = ["--dry-run"] if command == "clean" else []
    assert not _ESCAPE.search(cleanable.call(command, *options).out)
    assert _ESCAPE.search(on_terminal(cleanable, command, *options))
    # Bold is no colour; but nothing is coloured.
    plain = on_terminal(cleanable, command, *options, NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*(3[0-7]|9[0-7]|38;)", plain)
    assert command == "clean" or not _ESCAPE.search(plain)


@pytest.mark.parametrize("width", [40, 60, 100])
def test_no_line_of_a_table_is_wider_than_the_terminal(cleanable: User, width: int) -> None:
    environ = {"COLUMNS": str(width)}
    status = cleanable.call("status", environ=environ)
    assert "finished" in status.out
    assert max(map(len, status.out.splitlines())) <= width
    answer = cleanable.call("clean", "--dry-run", environ=environ)
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert max(map(len, lines)) <= width
    assert "checkpoint of step 10" in " ".join(" ".join(line.split()) for line in lines) or width == 40
