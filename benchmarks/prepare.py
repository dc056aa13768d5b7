"""How fast a table becomes a prepared set, beside the row-by-row way of bert_train_parallel.

    python benchmarks/prepare.py --tokenizer FOLDER [--rows 100000] [--words 30] [--max-tokens 128]

Both read the same CSV of made-up texts with the same tokenizer (FOLDER holds a tokenizer.json), fold what is
too long, and leave a database of samples, labels and queues; each runs in a process of its own, one after the
other. Ours also hashes and checks the file, keeps the texts, and writes the flat arrays. Row by row means:
one text at a time through transformers' AutoTokenizer, ids and attention mask padded to the sequence length
as Python lists, one INSERT for each, a commit every 1,000 rows. A third line shows that loop with the bare
tokenizers library, so that what transformers costs can be told apart. Memory is the largest resident set of
the process. On a busy machine compare the seconds of CPU.

bert_train_parallel used BertTokenizer as transformers had it before version 5, written in Python. To measure
with that one too, put it into a folder (pip install --target PACKAGES "transformers<5") and name it:
--python PACKAGES.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import random
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

LABELS = ("left", "right", "neutral")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokenizer", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=30, help="words of a text on average")
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--python", type=Path, metavar="PACKAGES", help="packages with transformers before 5")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder / "table.csv", arguments.tokenizer, arguments.rows, arguments.words)
        size = (folder / "table.csv").stat().st_size / 1e6
        print(f"{arguments.rows:,} rows, {size:.0f} MB, at most {arguments.max_tokens} tokens a sample")
        ways: dict[str, Callable[..., int]] = {"ours": ours}
        if arguments.python:
            ways["row by row, in Python"] = partial(with_python, arguments.python)
        ways |= {"row by row": with_transformers, "row by row, bare library": with_tokenizers}
        found = {
            title: _in_a_process(way, folder, arguments.tokenizer, arguments.max_tokens)
            for title, way in ways.items()
        }
    for title, (seconds, cpu_s, memory_mb, samples) in found.items():
        print(
            f"{title:25} {arguments.rows / seconds:9,.0f} rows/s {seconds:7.1f} s ({cpu_s:.1f} s of CPU) "
            f"{memory_mb:5.0f} MB {samples:9,} samples, ours is {seconds / found['ours'][0]:.1f} times as "
            f"fast ({cpu_s / found['ours'][1]:.1f} by CPU)"
        )


def ours(folder: Path, tokenizer: Path, max_tokens: int) -> int:
    """Prepare the table as training does; return the number of samples."""
    from toolkit.config.kinds import TextTable
    from toolkit.data.prepared import prepare

    data = TextTable(
        path=str(folder / "table.csv"),
        tokenizer="pretrained",
        tokenizer_path=str(tokenizer),
        max_tokens=max_tokens,
        fold="wordpiece",
        prepared_dir=str(folder / "prepared"),
    )
    return int(prepare(data).meta["samples"])


def with_transformers(folder: Path, tokenizer: Path, max_tokens: int) -> int:
    """Row by row, through transformers."""
    from transformers import AutoTokenizer

    loaded = AutoTokenizer.from_pretrained(tokenizer)
    # Of a text longer than the model takes it warns; folding follows.
    loaded.model_max_length = 1 << 30

    def pieces(text: str) -> Any:
        return loaded.convert_tokens_to_ids(loaded.tokenize(text))

    return _row_by_row(folder, pieces, loaded.cls_token_id, loaded.sep_token_id, max_tokens)


def with_python(packages: Path, folder: Path, tokenizer: Path, max_tokens: int) -> int:
    """Row by row, with the tokenizer that bert_train_parallel used."""
    sys.path.insert(0, str(packages))
    from transformers import BertTokenizer

    # This one reads vocab.txt alone: a word piece a line.
    vocabulary = json.loads((tokenizer / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    lines = folder / "vocab.txt"
    lines.write_text("\n".join(sorted(vocabulary, key=vocabulary.__getitem__)) + "\n", encoding="utf-8")
    loaded = BertTokenizer(str(lines))
    assert not loaded.is_fast, "this transformers has no tokenizer in Python"
    loaded.model_max_length = 1 << 30

    def pieces(text: str) -> Any:
        return loaded.convert_tokens_to_ids(loaded.tokenize(text))

    return _row_by_row(folder, pieces, loaded.cls_token_id, loaded.sep_token_id, max_tokens)


def with_tokenizers(folder: Path, tokenizer: Path, max_tokens: int) -> int:
    """Row by row, with nothing around the tokenizers library."""
    from tokenizers import Tokenizer

    loaded = Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    loaded.no_truncation()
    loaded.no_padding()
    first, *_, last = loaded.encode("a").ids

    def pieces(text: str) -> Any:
        return loaded.encode(text, add_special_tokens=False).ids

    return _row_by_row(folder, pieces, first, last, max_tokens)


def _row_by_row(
    folder: Path, pieces: Callable[[str], list[int]], first: int, last: int, max_tokens: int
) -> int:
    database = sqlite3.connect(folder / "rows.sqlite")
    database.execute("DROP TABLE IF EXISTS Samples")
    database.execute(
        "CREATE TABLE Samples (sample_id INT PRIMARY KEY, tok_ids TEXT, attention_mask TEXT, label INT)"
    )
    sample = 0
    with open(folder / "table.csv", newline="") as stream:
        for row in csv.DictReader(stream):
            ids = pieces(row["text"].replace("\n", " "))
            for start in range(0, len(ids), max_tokens - 2):
                chunk = [first, *ids[start : start + max_tokens - 2], last]
                padding = [0] * (max_tokens - len(chunk))
                mask = [int(number > 0) for number in chunk + padding]
                values = (sample, str(chunk + padding), str(mask), LABELS.index(row["label"]))
                database.execute("INSERT INTO Samples VALUES (?, ?, ?, ?)", values)
                sample += 1
                if sample % 1000 == 0:
                    database.commit()
    database.commit()
    order = list(range(sample))
    random.Random(3631).shuffle(order)
    tenth = sample // 10
    parts = order[: -2 * tenth], order[-2 * tenth : -tenth], order[-tenth:]
    for name, part in zip(("TrainQueue", "ValidateQueue", "TestQueue"), parts, strict=True):
        database.execute(f"DROP TABLE IF EXISTS {name}")
        database.execute(f"CREATE TABLE {name} (sample_id INT)")
        for number in part:
            database.execute(f"INSERT INTO {name} VALUES (?)", (number,))
        database.commit()
    database.close()
    return sample


def write_table(path: Path, tokenizer: Path, rows: int, words: int) -> None:
    """Texts of unequal lengths, of words from the tokenizer's vocabulary, as frequent as Zipf's law says."""
    vocabulary = json.loads((tokenizer / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    known = [word for word in vocabulary if word.isascii() and word.isalpha() and len(word) > 2]
    rng = random.Random(0)
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["text", "label"])
        for number in range(rows):
            length = 1 + int(rng.expovariate(1 / words))
            text = " ".join(known[int(len(known) ** rng.random()) - 1] for _ in range(length))
            writer.writerow([f"{text.capitalize()}.", LABELS[number % 3]])


def _in_a_process(way: Callable[..., int], *arguments: Any) -> tuple[float, float, float, int]:
    """Seconds, seconds of CPU, megabytes and samples of one way, in a fresh process."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(sender, way, *arguments))
    process.start()
    # Or the end of a process that died would not be noticed.
    sender.close()
    found: tuple[float, float, float, int] = receiver.recv()
    process.join()
    return found


def _measure(sender: Any, way: Callable[..., int], *arguments: Any) -> None:
    begin = time.monotonic()
    samples = way(*arguments)
    seconds = time.monotonic() - begin
    usage = resource.getrusage(resource.RUSAGE_SELF)
    sender.send((seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, samples))


if __name__ == "__main__":
    main()
