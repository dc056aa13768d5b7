"""Batches have the expected samples and padding."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from toolkit.data.ragged import Lists, offsets_of
from toolkit.workloads.text_classification.data.samples import Samples, pad_batch

SPLITS = st.lists(st.lists(st.integers(1, 65535), min_size=1, max_size=9), min_size=1, max_size=12)


def samples_of(token_lists: list[list[int]], dtype: npt.DTypeLike) -> Samples:
    lengths = np.array([len(tokens) for tokens in token_lists], dtype=np.int32)
    return Samples(
        ids=np.arange(len(lengths)),
        text_ids=np.arange(len(lengths)),
        lengths=lengths,
        labels=np.arange(len(lengths), dtype=np.int32) % 3,
        tokens=Lists(np.array([*chain(*token_lists)], dtype=dtype), offsets_of(lengths)),
        database=Path(),
    )


@given(SPLITS, st.data(), st.sampled_from([np.uint16, np.uint32]))
def test_a_batch_has_its_samples_and_padding(
    token_lists: list[list[int]], data: st.DataObject, dtype: npt.DTypeLike
) -> None:
    indices = data.draw(st.lists(st.integers(0, len(token_lists) - 1), max_size=20))
    tokens, lengths, labels = pad_batch(samples_of(token_lists, dtype), indices, pad_id=0)
    picked = [token_lists[index] for index in indices]
    width = max((len(sample) for sample in picked), default=1)
    assert tokens.shape == (len(indices), width)
    assert tokens.tolist() == [sample + [0] * (width - len(sample)) for sample in picked]
    assert lengths.tolist() == [len(sample) for sample in picked]
    assert labels.tolist() == [index % 3 for index in indices]
    assert tokens.dtype == lengths.dtype == labels.dtype == np.int64
