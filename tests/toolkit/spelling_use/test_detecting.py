"""A finished run finds errors in texts of any length, as it did in its evaluation."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.toolkit.training import Lab
from toolkit.config import load_resolved
from toolkit.errors import CheckpointError, UserError
from toolkit.rundir import RunDir
from toolkit.spelling.words import words_of
from toolkit.spelling_samples.prepared import prepare
from toolkit.spelling_use.detecting import Detector, open_detector


def texts_of_test(run: RunDir) -> list[str]:
    """What its test set has, errors included."""
    data = prepare(load_resolved(run.config).data)
    with closing(sqlite3.connect(data.path / "samples.sqlite")) as connection:
        rows = connection.execute("SELECT text FROM samples WHERE split = 'test' ORDER BY sample_id")
        return [text for (text,) in rows]


def test_labels_are_those_of_the_evaluation(of_words: RunDir) -> None:
    print(of_words.result.read_text(), (of_words.path/"artifacts").iterdir())
    found = open_detector(of_words, "cpu").detect(texts_of_test(of_words))
    written = [line.split() for line in of_words.detections("test").read_text().splitlines()]
    assert [[str(label) for label in labels] for labels in found] == written
    assert any("1" in labels for labels in written)
