"""Splits of datasets, batches of samples."""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
from collections import UserDict, namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_sequence
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset

from toolkit.errors import UserError
from toolkit.workloads.custom.functions.samples import collated, digest_of, moved, split_of


def digest(dataset: Any, lengths: Any = None) -> str:
    return digest_of(split_of(dataset, lengths, "data"))


def test_samples_have_length_1_unless_lengths_are_given() -> None:
    assert split_of([5, 6, 7], None, "data").lengths.tolist() == [1, 1, 1]
    assert split_of([5, 6, 7], [2, 3, 4], "data").lengths.tolist() == [2, 3, 4]
    assert split_of([5, 6, 7], None, "data").take(np.array([2, 0])) == [7, 5]


@pytest.mark.parametrize("lengths", [[2, 3], [1.5, 2, 3], [2, -1, 3], [[1], [2], [3]], [[1], [2, 3], [4]]])
def test_lengths_are_a_whole_number_for_each_sample(lengths: object) -> None:
    with pytest.raises(UserError, match="for each of 3 samples"):
        split_of([5, 6, 7], lengths, "data")


def test_getitems_of_a_dataset_is_called_once_for_several_samples() -> None:
    class Table(list[int]):
        def __getitems__(self, places: list[int]) -> tuple[int, ...]:
            asked.append(places)
            return tuple(self[place] for place in places)

    asked: list[list[int]] = []
    assert split_of(Table([5, 6, 7]), None, "data").take(np.array([2, 0])) == [7, 5]
    assert asked == [[2, 0]]


def test_batch_of_a_tensor_dataset_equals_its_collated_samples() -> None:
    inputs, labels, places = torch.arange(12.0).view(4, 3), torch.tensor([3, 1, 4, 1]), np.array([2, 0, 2])
    dataset = TensorDataset(inputs, labels)
    found = split_of(dataset, None, "data").batch(places, "py:3")
    expected = collated([dataset[int(place)] for place in places], "py:3")
    assert type(found) is type(expected)
    assert all(map(torch.equal, found, expected))
    with pytest.raises(UserError, match="py:3"):
        split_of(TensorDataset(inputs.to_sparse(), labels), None, "data").batch(places, "py:3")


@pytest.mark.parametrize(
    "samples",
    [[object()], [{"id": 2**64}], [1.5, 10**400], [{"x": 1}, np.ones(2)]],
    ids=["of no known type", "with a whole number of 65 bits", "too large for a float", "of two types"],
)
def test_samples_that_cannot_be_collated_are_refused(samples: list[Any]) -> None:
    with pytest.raises(UserError, match=r"digits\.py:3.*collate"):
        collated(samples, "digits.py:3")


@pytest.mark.parametrize("wrap", [lambda row: row, lambda row: (row, 1), lambda row: {"of": [row]}])
def test_a_missing_key_is_named_with_its_sample(wrap: Callable[[dict[str, float]], Any]) -> None:
    samples = [wrap({"x": 1.0, "y": 0.0}), wrap({"y": 1.0, "x": 2.0}), wrap({"x": 2.0})]
    with pytest.raises(UserError, match=r"sample 3 of 3.*'y'"):
        collated(samples, "digits.py:3")


def test_error_in_a_mapping_of_the_user_is_not_taken_for_a_missing_key() -> None:
    class Lazy(UserDict[str, float]):
        def __getitem__(self, key: str) -> float:
            raise KeyError("inner")

    with pytest.raises(KeyError, match="inner"):
        collated([Lazy(x=1.0), Lazy(x=2.0)], "digits.py:3")


def test_nested_tensors_of_a_batch_are_moved() -> None:
    pair = namedtuple("pair", "x y")
    batch = {"a": [torch.ones(1), "text"], "b": pair(torch.zeros(2), 3)}
    found = moved(batch, torch.device("meta"))
    assert found["a"][0].device.type == found["b"].x.device.type == "meta"
    assert (found["a"][1], found["b"].y, type(found["b"])) == ("text", 3, pair)


def test_objects_with_a_to_method_are_moved_and_keep_their_class() -> None:
    class Encoding(UserDict[str, torch.Tensor]):
        """Like the class of transformers: its items are attributes."""

        def to(self, device: torch.device) -> Encoding:
            return Encoding({name: each.to(device) for name, each in self.items()})

    found = moved([Encoding(x=torch.ones(2)), pack_sequence([torch.ones(2)])], torch.device("meta"))
    assert type(found[0]) is Encoding
    assert found[0]["x"].device.type == found[1].data.device.type == "meta"
    assert found[1].batch_sizes.device.type == "cpu"


class Lazy(Dataset[int]):
    """Opens its file when it is first read."""

    def __init__(self, path: Path) -> None:
        self.path, self.file = path, None

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> int:
        self.file = self.file or open(self.path, "rb", buffering=0)  # type: ignore[assignment]  # noqa: SIM115
        return os.lseek(self.file.fileno(), index, os.SEEK_SET)  # type: ignore[attr-defined]


@pytest.mark.parametrize("wrap", [lambda each: ConcatDataset([Subset(each, [2, 0, 1])]), lambda each: each])
def test_forked_process_gets_an_unread_copy_of_the_dataset(tmp_path: Path, wrap: Any) -> None:
    """A file that is open when processes are forked has one place for all of them."""

    def is_open() -> bool:
        inner = split.dataset if wrapped is lazy else split.dataset.datasets[0].dataset
        return inner.file is not None

    (tmp_path / "rows").write_bytes(b"abc")
    lazy = Lazy(tmp_path / "rows")
    wrapped = wrap(lazy)
    split = split_of(wrapped, None, "data")
    digest_of(split)
    assert is_open()
    child = multiprocessing.get_context("fork").Process(target=lambda: sys.exit(is_open()))
    child.start()
    child.join()
    assert child.exitcode == 0


def test_forked_process_reads_a_dataset_that_closes_its_file_when_it_is_deleted(tmp_path: Path) -> None:
    class Closing(Lazy):
        def __del__(self) -> None:
            self.file.close()  # type: ignore[attr-defined]

    (tmp_path / "rows").write_bytes(b"abc")
    opened = Closing(tmp_path / "rows")
    assert opened[0] == 0
    split = split_of(opened, None, "data")
    digest_of(split)
    child = multiprocessing.get_context("fork").Process(target=lambda: split.take(np.array([1, 2])))
    child.start()
    child.join()
    assert child.exitcode == 0


def test_dataset_with_slots_keeps_their_values() -> None:
    class Slotted(Dataset[int]):
        __slots__ = ("rows",)

        def __init__(self) -> None:
            self.rows = [5, 6]

        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> int:
            return self.rows[index]

    assert split_of(Slotted(), None, "data").take(np.array([1, 0])) == [6, 5]


def test_digest_changes_with_the_data() -> None:
    samples = [({"x": np.arange(3) + number}, torch.tensor(number), "text", None) for number in range(40)]
    changed = [*samples[:-1], ({"x": np.arange(3)}, torch.tensor(0), "text", None)]
    assert digest(samples) == digest(list(samples))
    assert len({digest(samples), digest(changed), digest(samples[:-1]), digest(samples, range(40))}) == 4


def test_digest_ignores_rounding_differences() -> None:
    exact = np.log(np.arange(1.0, 50.0))
    for kind in (np.asarray, torch.tensor, np.ndarray.tolist):
        assert digest(kind(exact)) == digest(kind(np.nextafter(exact, 9))) != digest(kind(exact * 1.1))
    halves = torch.tensor([[0.5, float("nan")], [-float("inf"), 2.0]], dtype=torch.bfloat16)
    assert digest(halves) == digest(halves.clone()) != digest(halves * 2)
    rows = torch.tensor([[1.7e9, 0.1], [1.7e9, -0.3]])
    assert len({digest(rows), digest(rows.flip(0)), digest(rows.abs())}) == 3


def test_digest_does_not_depend_on_random_augmentation() -> None:
    class Augmented:
        def __init__(self, draw: Any) -> None:
            self._draw = draw

        def __len__(self) -> int:
            return 5

        def __getitem__(self, index: int) -> float:
            return index + self._draw()

    for draw, changing in ((random.random, []), (np.random.default_rng(0).random, [0, 1, 2, 3, 4])):
        noted: list[int] = []
        split = split_of(Augmented(draw), None, "data")
        assert digest_of(split, noted.append) == digest(Augmented(draw))
        assert noted == changing
