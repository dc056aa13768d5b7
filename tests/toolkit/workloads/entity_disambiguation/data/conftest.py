"""The data section of the generated entities."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.workloads.entity_disambiguation.entity_files import tiny_entities, write_lines
from toolkit.workloads.entity_disambiguation.config import EntityMentions
from toolkit.workloads.entity_disambiguation.data.encoding.tokenizer import MarkedTokenizer


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with sentences, database and a tiny BERT."""
    folder = tmp_path_factory.mktemp("entities")
    tiny_entities(folder)
    return folder


@pytest.fixture
def data(world: Path, tmp_path: Path) -> EntityMentions:
    """The data section; each test has its own folder of prepared sets."""
    found: EntityMentions = tiny_entities(world, "data.eval_slices=[]", "evaluation.metric=loss:min").data
    return dataclasses.replace(found, prepared_dir=str(tmp_path / "prepared"))


@pytest.fixture
def other(data: EntityMentions, tmp_path: Path) -> Callable[..., EntityMentions]:
    """Make the data section with other lines in a split, and with other settings."""

    def make(split: str, *records: dict[str, Any], **settings: Any) -> EntityMentions:
        path = write_lines(tmp_path / f"own_{split}.jsonl", records)
        return dataclasses.replace(data, **{split: str(path)}, **settings)

    return make


@pytest.fixture(scope="session")
def tokenizer(world: Path) -> MarkedTokenizer:
    return MarkedTokenizer(str(world / "bert"), 40)
