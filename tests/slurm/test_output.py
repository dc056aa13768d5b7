"""Whatever standard output is: a command says in one line what became of its answer."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TextIO

import pytest
from rich.console import Console
from rich.table import Table

from slurm.cli import main
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import User
from toolkit.system.output.command_output import CommandOutput

#: Commands that print with and without rich, by their own hand and by argparse.
SHOWING = (("plan", "tiny.yaml"), ("plan", "tiny.yaml", "--json"), ("status",), ("schema",), ("--help",))


@contextmanager
def a_pipe_without_reader() -> Iterator[TextIO]:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        yield stream


def run_into(stdout: TextIO | None, *arguments: str) -> tuple[int, str]:
    """Exit code and standard error of a command that writes to a stream."""
    errors = io.StringIO()
    with redirect_stdout(stdout), redirect_stderr(errors):
        try:
            code = main(arguments)
        except SystemExit as exit:
            code = int(exit.code or 0)
    return code, errors.getvalue()


@pytest.mark.parametrize("arguments", SHOWING, ids=" ".join)
def test_output_that_cannot_be_written_is_a_one_line_error(user: User, arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        code, errors = run_into(full, *arguments)
    assert code == 2
    assert errors.startswith("error: standard output ")
    assert os.strerror(28) in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize("arguments", SHOWING, ids=" ".join)
def test_closed_output_pipe_is_no_error(user: User, arguments: tuple[str, ...]) -> None:
    with a_pipe_without_reader() as pipe:
        assert run_into(pipe, *arguments) == (0, "")


@pytest.mark.parametrize("arguments", SHOWING, ids=" ".join)
def test_missing_standard_output_is_no_error(user: User, arguments: tuple[str, ...]) -> None:
    assert run_into(None, *arguments) == (0, "")


def test_error_of_a_command_is_shown_instead_of_that_of_its_output(user: User) -> None:
    with open("/dev/full", "w") as full:
        code, errors = run_into(full, "report", "nowhere")
    assert code == 2
    assert "nowhere" in errors
    assert "standard output" not in errors


def test_a_job_is_submitted_although_its_id_cannot_be_shown(user: User, fake: FakeSlurm) -> None:
    with open("/dev/full", "w") as full:
        code, errors = run_into(full, "submit", "tiny.yaml")
    assert len(user.job_ids) == 1
    assert code == 2
    assert errors.splitlines()[-1].startswith("error: standard output ")


def test_job_is_submitted_although_the_output_pipe_is_closed(user: User, fake: FakeSlurm) -> None:
    with a_pipe_without_reader() as pipe:
        code, _ = run_into(pipe, "submit", "tiny.yaml")
    assert (code, len(user.job_ids)) == (0, 1)


@pytest.mark.parametrize(
    "encoding, errors", [("latin-1", "strict"), ("ascii", "strict"), ("ascii", "surrogateescape")]
)
def test_characters_that_the_encoding_lacks_are_replaced(user: User, encoding: str, errors: str) -> None:
    """As in the locale C, where Python gives back the bytes of names and nothing else."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors=errors, write_through=True)
    user.write("tiny.yaml", user.config.read_text() + 'resources: {comment: "pâte → 😀"}\n')
    assert run_into(stream, "plan", "tiny.yaml") == (0, "")
    shown = "pâte" if encoding == "latin-1" else "p?te"
    assert f"{shown} ? ?" in raw.getvalue().decode(encoding)


def test_a_report_is_drawn_without_the_characters_that_the_encoding_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", CommandOutput(stream))
    table = Table(title="tiny → 😀")
    table.add_row("größer", "–")
    Console(width=40).print(table)
    assert "größer" in stream.buffer.getvalue().decode("latin-1")


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "utf-8"])
def test_json_keeps_every_character_in_any_encoding(user: User, encoding: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, write_through=True)
    user.write("tiny.yaml", user.config.read_text() + 'resources: {comment: "pâte → 😀"}\n')
    assert run_into(stream, "plan", "tiny.yaml", "--json") == (0, "")
    assert json.loads(raw.getvalue())["config"]["resources"]["comment"] == "pâte → 😀"


def test_full_standard_error_does_not_change_the_exit_code(user: User) -> None:
    with open("/dev/full", "w") as full:
        program = [sys.executable, "-m", "slurm", "report", "nowhere"]
        done = subprocess.run(program, stdout=subprocess.PIPE, stderr=full, check=False)
    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.slow
def test_run_trains_although_its_output_cannot_be_written(user: User) -> None:
    with open("/dev/full", "w") as full:
        program = [sys.executable, "-m", "slurm", "run", "tiny.yaml", "--procs", "2"]
        done = subprocess.run(program, stdout=full, stderr=full, check=False)
    assert done.returncode == 0
    assert user.run().result.exists()
