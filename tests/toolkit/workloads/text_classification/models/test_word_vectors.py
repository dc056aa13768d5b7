"""Initial vectors of an embedding from a text file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.toolkit.workloads.text_classification.tiny_texts import tiny_docnn
from toolkit.errors import DataError
from toolkit.precheck.check_inputs import check_inputs
from toolkit.workloads.text_classification.config import DocNN as Config
from toolkit.workloads.text_classification.models.docnn import DocNN, load_vectors

TOKENS = ("<pad>", "<unk>", "good", "bad", "fine")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vectors.txt"


def loaded(path: Path, text: str) -> torch.Tensor:
    path.write_text(text, encoding="utf-8")
    rows = torch.full((len(TOKENS), 2), 9.0)
    load_vectors(str(path), TOKENS, rows)
    return rows


@pytest.mark.parametrize("header", ["", "3 2\n"], ids=["GloVe", "word2vec"])
def test_tokens_in_the_file_get_its_vectors_and_other_tokens_keep_theirs(path: Path, header: str) -> None:
    rows = loaded(path, header + "bad -1 0.5\nelse 7 7\ngood 1e-1 2 \nbad 3 3\n")
    assert rows.tolist() == [[9, 9], [9, 9], [pytest.approx(0.1), 2], [-1, 0.5], [9, 9]]


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("good 1 2\nbad 1\n", r"vectors.txt:2: 1 numbers, expected 2 as in model.embedding_dim"),
        ("good 1 x\n", r"vectors.txt:1: expected numbers after the token"),
        ("else 1 2\n", r"for none of the 5 tokens"),
        ("", r"for none of the 5 tokens"),
    ],
)
def test_invalid_file_of_vectors_is_refused(path: Path, text: str, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        loaded(path, text)


def test_missing_file_is_reported(path: Path) -> None:
    with pytest.raises(DataError, match=r"model.vectors: .*vectors.txt cannot be read: No such file"):
        load_vectors(str(path), TOKENS, torch.zeros(5, 2))


def test_initial_vectors_are_from_the_file_and_padding_stays_zero(path: Path) -> None:
    path.write_text("<pad> 1 1\ngood 5 6\n", encoding="utf-8")
    config = Config(embedding_dim=2, filters=3, vectors=str(path))
    model = DocNN(config, vocabulary_size=5, labels=("a", "b"), pad_id=0, tokens=lambda: TOKENS)
    assert model.embedding.weight[0].tolist() == [0, 0]
    assert model.embedding.weight[2].tolist() == [5, 6]
    assert model.embedding.weight[3].abs().max() < 1


@pytest.mark.parametrize("text", ["text\tlabel\na fine film\tgood\n", "good 1 2 3\nbad 1 2 3\n", ""])
def test_a_file_without_vectors_of_the_right_size_is_refused_before_the_job(path: Path, text: str) -> None:
    overrides = [f"model.vectors={path}", "model.embedding_dim=2"]
    path.write_text("2 2\nof course 1 2\ngood 1 2\n", encoding="utf-8")
    check_inputs(tiny_docnn(path.parent, *overrides))
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"model\.vectors: none of the first lines"):
        check_inputs(tiny_docnn(path.parent, *overrides))
