"""Prepare a table row by row, as bert_train_parallel does.

Each text goes alone through transformers' AutoTokenizer; ids and attention mask are padded to the sequence
length as Python lists, with one INSERT each and a commit every 1,000 rows; then follows a queue of sample ids
for each split. bert_train_parallel used the tokenizer in Python of transformers before version 5; version 5
has it under another name.
"""

from __future__ import annotations

import csv
import json
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any


def load_tokenizer(tokenizer: Path, in_python: bool, folder: Path) -> Any:
    """Load the tokenizer of a model's folder; the Python one needs its vocabulary as a file in `folder`."""
    if in_python:
        from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy

        known = json.loads((tokenizer / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
        vocabulary = folder / "vocab.txt"
        vocabulary.write_text(
            "".join(f"{word}\n" for word in sorted(known, key=known.__getitem__)), encoding="utf-8"
        )
        loaded = BertTokenizerLegacy(str(vocabulary))
    else:
        from transformers import AutoTokenizer

        loaded = AutoTokenizer.from_pretrained(tokenizer)
    # Avoid the warning for texts longer than the model's limit: they are split afterwards.
    loaded.model_max_length = 1 << 30
    return loaded


def prepare(table: Path, tokenizer: Path, max_tokens: int, *, in_python: bool = False) -> int:
    """Write a database beside the table; return the number of samples."""
    loaded = load_tokenizer(tokenizer, in_python, table.parent)

    def pieces(text: str) -> Any:
        return loaded.convert_tokens_to_ids(loaded.tokenize(text))

    database = sqlite3.connect(table.with_suffix(".sqlite"))
    samples = _write_samples(database, table, pieces, (loaded.cls_token_id, loaded.sep_token_id), max_tokens)
    _write_queues(database, samples)
    database.close()
    return samples


def _write_samples(
    database: sqlite3.Connection,
    table: Path,
    pieces: Callable[[str], list[int]],
    around: tuple[int, int],
    max_tokens: int,
) -> int:
    database.execute(
        "CREATE TABLE Samples (sample_id INT PRIMARY KEY, tok_ids TEXT, attention_mask TEXT, label INT)"
    )
    first, last = around
    labels: dict[str, int] = {}
    sample = 0
    with open(table, encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            ids = pieces(row["text"].replace("\n", " "))
            for start in range(0, len(ids), max_tokens - 2):
                chunk = [first, *ids[start : start + max_tokens - 2], last]
                padding = [0] * (max_tokens - len(chunk))
                mask = [int(number > 0) for number in chunk + padding]
                label = labels.setdefault(row["label"], len(labels))
                values = (sample, str(chunk + padding), str(mask), label)
                database.execute("INSERT INTO Samples VALUES (?, ?, ?, ?)", values)
                sample += 1
                if sample % 1000 == 0:
                    database.commit()
    database.commit()
    return sample


def _write_queues(database: sqlite3.Connection, samples: int) -> None:
    order = list(range(samples))
    random.Random(3631).shuffle(order)
    tenth = samples // 10
    parts = order[: -2 * tenth], order[-2 * tenth : -tenth], order[-tenth:]
    for name, part in zip(("TrainQueue", "ValidateQueue", "TestQueue"), parts, strict=True):
        database.execute(f"CREATE TABLE {name} (sample_id INT)")
        for number in part:
            database.execute(f"INSERT INTO {name} VALUES (?)", (number,))
        database.commit()
