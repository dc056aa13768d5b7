"""Write new files of sentences: divided into splits, with both kinds of spans, or with slices."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.data.order.shuffle import permutation, stream
from toolkit.errors import DataError
from toolkit.files import open_atomic, write_json
from toolkit.workloads.entity_disambiguation.data.entities.division import TEST, TRAIN, VALIDATION, split_of
from toolkit.workloads.entity_disambiguation.data.entities.jsonlines import write_lines
from toolkit.workloads.entity_disambiguation.data.entities.sentences import Sentence, read_sentences
from toolkit.workloads.entity_disambiguation.data.entities.slices import Bools, GoldCounts
from toolkit.workloads.entity_disambiguation.data.entities.spans import words_of_characters

#: The usual names of the files of the splits.
SPLIT_FILES = {TRAIN: "train.jsonl", VALIDATION: "dev.jsonl", TEST: "test.jsonl"}
_SPLITS = tuple(SPLIT_FILES)


def divide(path: Path, folder: Path, percent: int, by: str) -> dict[str, int]:
    """Write train.jsonl, dev.jsonl and test.jsonl, each shuffled, and the counts of golds in training.

    Lines are unchanged. Returns the number of sentences of each split. Raises DataError for faulty lines, if
    a split would be empty, or if one would replace the file that is read; nothing is written then.
    """
    if not 0 < percent < 50:
        raise DataError(f"split is {percent}, expected percents of test and of validation from 1 to 49 each")
    for target in (folder / name for name in SPLIT_FILES.values()):
        if target.exists() and target.samefile(path):
            raise DataError(f"{path} would be replaced by the split {target}: write into another folder")
    splits, lines, (counts, gold_counts) = array("b"), array("q"), (GoldCounts(), GoldCounts())
    for sentence in read_sentences(path):
        split = split_of(sentence, percent, by)
        splits.append(_SPLITS.index(split))
        lines.append(sentence.line)
        if split == TRAIN:
            counts.add(sentence)
            gold_counts.add(sentence, count_weak=False)
    rows, codes = np.array(lines, np.int64) - 1, np.array(splits, np.int8)
    sizes = {split: int(np.count_nonzero(codes == code)) for code, split in enumerate(_SPLITS)}
    _check_sizes(path, sizes)
    folder.mkdir(parents=True, exist_ok=True)
    starts = _line_starts(path)
    for code, name in enumerate(SPLIT_FILES.values()):
        order = permutation(stream("sentences 1", 0, name), sizes[_SPLITS[code]])
        _copy_lines(path, starts[rows[codes == code][order]], folder / name)
    _write_counts(folder, counts, "")
    _write_counts(folder, gold_counts, "_gold")
    return sizes


def _check_sizes(path: Path, sizes: Mapping[str, int]) -> None:
    for split, size in sizes.items():
        if not size:
            raise DataError(
                f"{path}: no sentence falls into {split}; give more sentences, another --split, "
                "or --by sentence where few sources have many sentences"
            )


def _line_starts(path: Path) -> npt.NDArray[np.int64]:
    with open(path, "rb") as lines:
        return np.append(0, np.cumsum(np.fromiter(map(len, lines), np.int64)))


def _copy_lines(path: Path, starts: npt.NDArray[np.int64], target: Path) -> None:
    with open(path, "rb") as source, open_atomic(target) as copy:
        for start in starts:
            source.seek(start)
            copy.write(source.readline().decode("utf-8").removeprefix("\ufeff").rstrip("\r\n") + "\n")


def _write_counts(folder: Path, counts: GoldCounts, suffix: str) -> None:
    write_json(folder / f"qid2cnt{suffix}.json", dict(counts.entities.most_common()))
    write_json(
        folder / f"alias2qid_cnt{suffix}.json", {a: dict(c) for a, c in sorted(counts.aliases.items())}
    )


def convert(path: Path, target: Path) -> int:
    """Write the sentences with spans of words and of characters; return their number. Raises DataError."""

    def with_both(sentence: Sentence) -> dict[str, Any]:
        places = [mention.characters for mention in sentence.mentions]
        try:
            words = [words_of_characters(sentence.text, place) for place in places]
        except ValueError as error:
            raise DataError(f"{path}:{sentence.line}: char_spans: {error}") from error
        return {"spans": words, "char_spans": places}

    return _rewrite(path, target, with_both)


def write_slices(path: Path, target: Path, slices: Mapping[str, Bools]) -> int:
    """Write the sentences with the members of slices under the key `slices`; return their number.

    slices  name -> [mentions] in the order of the file; slices with other names are kept
    """
    done = 0

    def with_slices(sentence: Sentence) -> dict[str, Any]:
        nonlocal done
        here = range(done, done + len(sentence.mentions))
        done = here.stop
        members = {
            name: {str(place): float(of[index]) for place, index in enumerate(here)}
            for name, of in slices.items()
        }
        return {"slices": (sentence.record.get("slices") or {}) | members}

    return _rewrite(path, target, with_slices)


def _rewrite(path: Path, target: Path, keys: Callable[[Sentence], dict[str, Any]]) -> int:
    target.parent.mkdir(parents=True, exist_ok=True)
    return write_lines(target, ({**each.record, **keys(each)} for each in read_sentences(path)))
