"""Texts are encoded for predictions as for training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.toolkit.workloads.text_classification.tiny_texts import tiny_bert, tiny_docnn
from toolkit.config import Experiment
from toolkit.workload import silent
from toolkit.workloads.text_classification.inference.kept_encoding import TextReader

Make = Callable[..., Experiment]
_SHORT = ("data.max_tokens=3", "data.min_count=2", "data.lowercase=false")
SAMPLES = {
    "words": (tiny_docnn, _SHORT[:1]),
    "rare words and capitals": (tiny_docnn, _SHORT[1:]),
    "whitespace, folded": (tiny_docnn, ("data.tokenizer=whitespace", "data.fold=word", *_SHORT)),
    "a pretrained tokenizer, folded": (tiny_bert, ()),
    "a pretrained tokenizer, cut": (tiny_bert, ("data.fold=none",)),
}


@pytest.mark.parametrize("make, overrides", SAMPLES.values(), ids=list(SAMPLES))
def test_texts_of_each_split_have_the_tokens_of_the_prepared_set(
    make: Make, overrides: tuple[str, ...], tmp_path: Path
) -> None:
    data = make(tmp_path, *overrides).data
    prepared = data.prepare(silent)
    reader = TextReader(data, prepared.encoding)
    for split in ("train", "validation", "test"):
        samples = prepared.split(split)
        ids, of_text = np.unique(samples.text_ids, return_inverse=True)
        found, text_of = reader.read(samples.whole_texts(ids))
        assert text_of.tolist() == of_text.tolist()
        expected = samples.tokens.gather(samples.ids, -1)
        assert found.gather(np.arange(len(found)), -1).tolist() == expected.tolist()


def test_a_text_without_words_is_one_sample(tmp_path: Path) -> None:
    data = tiny_docnn(tmp_path).data
    found, text_of = TextReader(data, data.prepare(silent).encoding).read(["", " ", "☃"])
    assert [each.tolist() for each in found] == [[1], [1], [1]]
    assert text_of.tolist() == [0, 1, 2]
