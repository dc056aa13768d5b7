"""Data sections with texts of the made-up language."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.toolkit.workloads.spelling.spelling_files import tiny_words
from toolkit.workloads.spelling.config.data import SpellingTexts
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.prepared import SpellingSet

Make = Callable[..., SpellingTexts]


@pytest.fixture(scope="session")
def language(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts, tokenizer and dictionary."""
    folder = tmp_path_factory.mktemp("language")
    tiny_words(folder)
    return folder


@pytest.fixture
def make(language: Path, tmp_path: Path) -> Make:
    """Makes the data section of that language with other settings; each test has its own folder of sets."""
    found: SpellingTexts = tiny_words(language).data

    def made(**settings: Any) -> SpellingTexts:
        return dataclasses.replace(found, **{"prepared_dir": str(tmp_path / "prepared"), **settings})

    return made


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> int:
    """Shards of so few lines that the 84 texts and the 11 of the test set make 11 of them."""
    monkeypatch.setattr(layout, "SHARD", 10)
    return 11


def row(prepared: SpellingSet, name: str, index: int, split: str = "train") -> list[int]:
    """Return a list of a sample by its name in the layout; -1 stands for an empty list."""
    return prepared.split(split).rows(name, np.array([index]), -1)[0].tolist()
