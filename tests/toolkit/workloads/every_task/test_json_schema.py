"""The JSON Schema of experiments of our workloads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.config.test_json_schema import wrong
from toolkit.config import load, to_plain
from toolkit.config.composition.yaml_files import parse

HOUSE = Path(__file__).parents[4]
CONFIGS = HOUSE / "configs"
NAMED = "yaml-language-server: $schema="
EXPERIMENTS = [path for path in sorted(CONFIGS.rglob("*.yaml")) if "\nname:" in "\n" + path.read_text()]

Put = Callable[[str, Any], dict[str, Any]]


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_our_experiments_are_valid_as_written_and_as_runs_store_them(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("STK_REPAIR_RUN", "STK_START_FROM_CHECKPOINT", "STK_MISSPELLINGS"):
        monkeypatch.setenv(name, "somewhere")
    assert wrong(parse(path.read_text(encoding="utf-8")).value) == []
    assert wrong(to_plain(load(path))) == []


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_our_experiments_name_the_schema(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    named = path.parent / first.partition(NAMED)[2]
    assert named.resolve() == CONFIGS / "stk.schema.json"


def test_the_schema_beside_our_experiments_is_what_the_command_prints() -> None:
    command = [sys.executable, "-m", "slurm", "schema"]
    # Without the toy workload.
    environ = {**os.environ, "PYTHONPATH": str(HOUSE)}
    printed = subprocess.run(
        command, cwd=HOUSE, env=environ, capture_output=True, text=True, check=True
    ).stdout
    assert (CONFIGS / "stk.schema.json").read_text(encoding="utf-8") == printed, "run `stk schema`"


@pytest.mark.parametrize(
    "noise, is_good",
    [
        ("artificial", True),
        ({"kind": "artificial", "rate": 0.1}, True),
        ({"kind": "chained", "steps": ["artificial", {"kind": "whitespace", "delete": 0.2}]}, True),
        ("loud", False),
        ({"kind": "artificial", "rate": 2}, False),
        ({"kind": "chained", "steps": [{"kind": "whitespace", "rate": 0.2}]}, False),
    ],
)
def test_nested_sections_are_checked_by_their_kind(noise: Any, is_good: bool) -> None:
    tree = {
        "name": "words",
        "task": {"kind": "sed_words"},
        "model": {"kind": "transformer"},
        "data": {"path": "a.txt", "tokenizer_path": "t", "noise": noise},
    }
    assert (wrong(tree) == []) is is_good
