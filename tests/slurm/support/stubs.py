"""Slurm's programs as scripts on PATH, because a real cluster neither hangs nor fails on demand."""

from __future__ import annotations

from pathlib import Path


class Stubs:
    """A folder on PATH; what a stub was called with stands in its `.calls` file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, name: str, body: str) -> None:
        """Install `name` as a shell script that notes its arguments, one a line, and then does `body`."""
        path = self.folder / name
        calls = self.folder / f"{name}.calls"
        path.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\" >> '{calls}'\n{body}\n")
        path.chmod(0o755)

    def answers(self, name: str, output: str) -> None:
        """Install `name` as a program that prints `output`."""
        answer = self.folder / f"{name}.answer"
        answer.write_text(output)
        self.add(name, f"exec /bin/cat '{answer}'")

    def fails(self, name: str, errors: str, code: int = 1) -> None:
        """Install `name` as a program that complains and fails."""
        answer = self.folder / f"{name}.answer"
        answer.write_text(errors)
        self.add(name, f"/bin/cat '{answer}' >&2; exit {code}")

    def calls(self, name: str) -> list[list[str]]:
        """The arguments of each call of a stub."""
        path = self.folder / f"{name}.calls"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        calls = []
        while lines:
            count = int(lines[0])
            calls.append(lines[1 : count + 1])
            lines = lines[count + 1 :]
        return calls
