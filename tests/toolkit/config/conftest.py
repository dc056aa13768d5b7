"""Experiment files in an empty working folder, and a clean environment."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.config.trees import GOOD
from toolkit.config import check
from toolkit.config.schema import Experiment
from toolkit.errors import ConfigError, Fault

MOVIES = """\
name: movies
task: {kind: toy_texts}
model: ${from_file:model/docnn.yaml}
data: {path: "${oc.env:STK_DATA_DIR,data}/movie_reviews.tsv"}
resources: {tasks_per_node: 2}
"""

DOCNN = """\
kind: convolutions
embedding_dim: 64
kernels: [3, 4]
"""


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, without variables that configs refer to."""
    for name in ("STK_CONFIG_DIR", "STK_DATA_DIR", "FIRST", "SECOND", "UNSET", "UNSET_TOO"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write(working_folder: Path) -> Callable[[str, str], Path]:
    """Write a file below the working folder; returns its relative path."""

    def writer(name: str, text: str) -> Path:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return writer


@pytest.fixture
def movies(write: Callable[[str, str], Path]) -> Path:
    """A good experiment, which includes one file."""
    write("configs/model/docnn.yaml", DOCNN)
    return write("configs/movies.yaml", MOVIES)


@pytest.fixture
def faults() -> Callable[..., list[Fault]]:
    """The faults that a call raises; a call that raises none fails the test."""

    def run(function: Callable[..., Any], *arguments: Any) -> list[Fault]:
        with pytest.raises(ConfigError) as caught:
            function(*arguments)
        return list(caught.value.faults)

    return run


@pytest.fixture
def tree() -> dict[str, Any]:
    """The plain tree of a good experiment, to be changed."""
    return deepcopy(GOOD)


@pytest.fixture
def changed(tree: dict[str, Any]) -> Callable[..., dict[str, Any]]:
    """The good tree with keys of some sections changed."""

    def change(**sections: dict[str, Any]) -> dict[str, Any]:
        return tree | {name: tree.get(name, {}) | values for name, values in sections.items()}

    return change


@pytest.fixture
def good(changed: Callable[..., dict[str, Any]]) -> Callable[..., Experiment]:
    """The experiment of the good tree with keys of some sections changed."""
    return lambda **sections: check(changed(**sections))


@pytest.fixture
def broken(
    changed: Callable[..., dict[str, Any]], faults: Callable[..., list[Fault]]
) -> Callable[..., list[Fault]]:
    """The faults of the good tree with keys of some sections changed."""
    return lambda **sections: faults(check, changed(**sections))
