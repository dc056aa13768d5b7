"""The spelling study's scripts, ready to run; any script as a module."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.scripts.spelling_study import SCRIPTS, Study


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    return Study(tmp_path, monkeypatch)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """A script as a module."""
    monkeypatch.syspath_prepend(str(SCRIPTS))

    def loaded(name: str) -> ModuleType:
        loader = importlib.machinery.SourceFileLoader(name, str(SCRIPTS / name))
        spec = importlib.util.spec_from_loader(name, loader)
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        return module

    return loaded
