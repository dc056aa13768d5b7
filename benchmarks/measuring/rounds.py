"""Measure candidates in turns, round by round, each in a new interpreter.

A machine that is slow for a while then slows all candidates, and no candidate profits from the imports of
another one. Rank processes have one thread for arithmetic each, as in the worker.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The amount of measuring; with `quick`, the figures mean nothing and only the code is tested."""

    quick: bool = False
    rounds: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One candidate at one piece of work.

    measure  figures by name
    needs    packages that must be installed
    """

    work: str
    candidate: str
    measure: Callable[[], dict[str, float]]
    needs: tuple[str, ...] = ()


class ChildFailed(Exception):
    """A candidate's process has failed; the message is the last line that it wrote."""


def in_turns(
    cases: Sequence[Case], rounds: int, say: Callable[[str], None]
) -> dict[tuple[str, str], list[dict[str, float]] | str]:
    """Measure every case once in each round; a case that fails is left out of the rounds after that."""
    found: dict[tuple[str, str], list[dict[str, float]] | str] = {}
    for case in cases:
        absent = [name for name in case.needs if importlib.util.find_spec(name) is None]
        found[case.work, case.candidate] = f"not installed: {', '.join(absent)}" if absent else []
    for number in range(rounds):
        # Every second round is reversed, so that no case always follows the same one.
        for case in cases if number % 2 == 0 else reversed(cases):
            rows = found[case.work, case.candidate]
            if isinstance(rows, str):
                continue
            say(f"round {number + 1} of {rounds}: {case.work}, {case.candidate}")
            try:
                rows.append(case.measure())
                say(_figures_text(rows[-1]))
            except ChildFailed as error:
                found[case.work, case.candidate] = f"failed: {error}"
    return found


def _figures_text(figures: Mapping[str, float]) -> str:
    # Printed at once, so that an aborted benchmark still shows its figures.
    return ", ".join(f"{name} {value:.6g}" for name, value in figures.items())


class Process:
    """A command that is running, with one thread for arithmetic."""

    def __init__(self, command: Sequence[str], variables: Mapping[str, str]) -> None:
        self._output = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": _path(), **variables},
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )
        self.pid = self._process.pid

    @classmethod
    def of(
        cls, function: str, arguments: Mapping[str, Any], answer: Path, variables: Mapping[str, str]
    ) -> Process:
        """Start a function, as module:name, in a new interpreter that writes the result to `answer`."""
        command = [
            sys.executable,
            "-m",
            "benchmarks.measuring.child",
            function,
            json.dumps(arguments),
            str(answer),
        ]
        return cls(command, variables)

    def finish(self) -> None:
        """Wait for the end. Raises ChildFailed."""
        status = self._process.wait()
        with self._output as output:
            output.seek(0)
            lines = [line.strip() for line in output if line.strip()]
        if status != 0:
            raise ChildFailed(lines[-1] if lines else f"ended with status {status}")


def _path() -> str:
    # Some benchmarks use the experiments of the tests, which need the toy workload.
    own = (str(ROOT), str(ROOT / "tests" / "toy_workload"), os.environ.get("PYTHONPATH"))
    return os.pathsep.join(filter(None, own))


def call(function: str, variables: Mapping[str, str] | None = None, **arguments: Any) -> Any:
    """Call a function, as module:name, in a new interpreter; return its result. Values must be JSON.

    Raises ChildFailed.
    """
    with tempfile.TemporaryDirectory() as name:
        answer = Path(name) / "answer.json"
        Process.of(function, arguments, answer, variables or {}).finish()
        return json.loads(answer.read_text())
