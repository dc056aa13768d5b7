"""A child process answers with one JSON document, also if libraries print, and exits with its status."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import os
from toolkit.errors import UserError
from toolkit.system.process_main import process_main, write_answer

def answer():
    print("a library says hello")
    os.write(1, b"and so does its C code\\n")
    {body}

process_main(lambda arguments: write_answer(answer))
"""


def run(body: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(body=body)], capture_output=True, text=True, check=False
    )


def test_only_the_answer_is_written_to_standard_output() -> None:
    ended = run('return {"word": "größer"}')
    assert (ended.returncode, json.loads(ended.stdout)) == (0, {"word": "größer"})
    assert "hello" in ended.stderr
    assert "C code" in ended.stderr


def test_a_user_error_gives_a_message_and_an_exit_code() -> None:
    ended = run('raise UserError("no such step")')
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "error: no such step" in ended.stderr
    assert "Traceback" not in ended.stderr
