"""Tab, pressed in real shells."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from slurm.commands.setup.completion import SCRIPTS
from tests.slurm.support.user import CODE, User
from tests.support.patience import PATIENCE_S
from toolkit.run.create_run import create_run

_ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|[=>78]|\][^\x07]*\x07)|\x07|\r")
_BACKSPACE = re.compile("[^\x08]\x08")

_STARTS = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}
_SET_UP = {
    "bash": "PS1='ready$ '; source ./script",
    "zsh": "PS1='ready$ '; autoload -U compinit; compinit -u -d dump; source ./script",
}


class Terminal:
    """A shell on a terminal of its own, whose output is read as it comes."""

    def __init__(self, command: Sequence[str], cwd: Path, environ: dict[str, str]) -> None:
        pid, self._terminal = pty.fork()
        if pid == 0:
            os.chdir(cwd)
            os.execvpe(command[0], command, environ)
        self._pid = pid
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def wait_for(self, text: str) -> None:
        """Return when a text has been shown since the last call."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.seen:
            ready, _, _ = select.select([self._terminal], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"no {text!r} in {self.seen!r}"
            self.seen += _ESCAPES.sub("", os.read(self._terminal, 4096).decode("utf-8", "replace"))
            while _BACKSPACE.search(self.seen):
                self.seen = _BACKSPACE.sub("", self.seen)
        self.seen = self.seen.partition(text)[2]

    def close(self) -> None:
        os.close(self._terminal)
        os.waitpid(self._pid, 0)


def shell(name: str) -> str:
    """The program. Where there is no root to install it, its tests are skipped; in CI they fail."""
    path = shutil.which(name)
    if path is None:
        missing = pytest.fail if os.environ.get("CI") else pytest.skip
        missing(f"{name} is not installed: python -m tests.support.system_packages")
    return path


@pytest.fixture
def environ(user: User, tmp_path: Path) -> dict[str, str]:
    """A bare environment in which `stk` is this very code."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "stk").write_text(
        f'#!/bin/sh\nPYTHONPATH="{CODE["PYTHONPATH"]}" exec "{sys.executable}" -m slurm "$@"\n'
    )
    (programs / "stk").chmod(0o755)
    return {
        "PATH": os.pathsep.join([str(programs), os.environ["PATH"], "/usr/bin", "/bin"]),
        "HOME": str(tmp_path),
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "STK_EXPERIMENT_DIR": str(user.experiments),
    }


@pytest.fixture(params=["bash", "zsh"])
def terminal(request: pytest.FixtureRequest, user: User, environ: dict[str, str]) -> Iterator[Terminal]:
    """An interactive shell that has sourced its script."""
    name = str(request.param)
    user.write("script", SCRIPTS[name])
    terminal = Terminal([shell(name), *_STARTS[name]], user.root, environ)
    terminal.type(_SET_UP[name] + "; echo all set\n")
    terminal.wait_for("\nall set")
    yield terminal
    terminal.close()


def test_tab_completes_commands_options_runs_keys_and_files(user: User, terminal: Terminal) -> None:
    run = create_run(user.experiment(), user.experiments)
    user.write("it's $(two) words.yaml", "")
    for typed, completed in (
        ("stk stat", "stk status "),
        ("echo a | stk doc", "echo a | stk doctor "),
        ("stk submit it", "stk submit it\\'s\\ \\$\\(two\\)\\ words.yaml "),
        ("stk submit ~/tin", "stk submit ~/tiny.yaml "),
        ("stk clean --older", "stk clean --older-than "),
        ("stk status tin", f"stk status {run.run_id} "),
        ("stk submit tiny.y", "stk submit tiny.yaml "),
        ("stk submit tiny.yaml resources.requ", "stk submit tiny.yaml resources.requeue="),
        ("stk submit tiny.yaml resources.requeue=sam", "stk submit tiny.yaml resources.requeue=same_job "),
    ):
        terminal.type(f"{typed}\t#")
        terminal.wait_for(f"{completed}#")
        # Away with the line.
        terminal.type("\x15")


def test_fish_completes_commands_runs_keys_and_files(user: User, environ: dict[str, str]) -> None:
    run = create_run(user.experiment(), user.experiments)
    user.write("script.fish", SCRIPTS["fish"])

    def complete(line: str) -> list[str]:
        command = [shell("fish"), "--no-config", "-c", f"source script.fish; complete -C '{line}'"]
        done = subprocess.run(command, cwd=user.root, env=environ, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    assert [line.partition("\t")[0] for line in complete("stk stat")] == ["status"]
    assert [line.strip() for line in complete("stk status tin")] == [run.run_id]
    assert [line.strip() for line in complete("stk submit a.yaml resources.requeue=s")] == [
        "resources.requeue=same_job"
    ]
    assert [line.split("\t")[0] for line in complete("stk submit tiny.y")] == ["tiny.yaml"]


def test_two_dashes_begin_an_option_or_a_command_of_the_user(user: User) -> None:
    def offered(*words: str) -> str:
        return user.stk("completion", "--candidates", *words).out

    assert "--json\t" in offered("status", "--")
    assert offered("run", "--", "python", "tr") == ":files\t\n"


def test_the_command_prints_the_script_of_a_shell(user: User) -> None:
    for name, script in SCRIPTS.items():
        assert user.stk("completion", name).out == script
    assert user.stk("completion").code == 2
    assert user.stk("completion", "tcsh").code == 2
