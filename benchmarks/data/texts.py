"""Texts of mixed length: real texts if they are installed, otherwise made-up texts.

STK_REFERENCE_DATA/sst2/train.tsv, single sentences; STK_DATA_DIR/wiki_topics.csv (scripts/get_wiki_topics),
first paragraphs of articles; STK_DATA_DIR/minilm (scripts/get_minilm), model and tokenizer.
"""

from __future__ import annotations

import csv
import json
import os
import random
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.measuring.rounds import Size, call
from benchmarks.stepping.work import WORDS, word, write_tokenizer

Rows = list[tuple[str, str]]


def tables(size: Size, folder: Path, most: Mapping[str, int] | None = None) -> dict[str, Path]:
    """Write the available texts as .csv, at most `most[name]` of each; return the files by name."""
    found = {} if size.quick else {**_sst2(), **_wiki()}
    paths = {}
    for name, rows in (found or {"made-up texts": _made_up(200 if size.quick else 5000)}).items():
        paths[name] = folder / f"{name.replace(' ', '_')}.csv"
        _write(paths[name], rows[: (most or {}).get(name)])
    return paths


def tokenizer(size: Size, folder: Path) -> Path:
    """Return the folder of MiniLM's tokenizer, or of a tokenizer of words if MiniLM is missing."""
    real = Path(os.environ.get("STK_DATA_DIR", "data")) / "minilm"
    if not size.quick and (real / "config.json").exists():
        return real.resolve()
    write_tokenizer(str(folder / "bert"))
    return folder / "bert"


def encoder(size: Size, folder: Path) -> Path:
    """Return the folder of MiniLM, or of a small BERT if MiniLM is missing."""
    found = tokenizer(size, folder)
    if found.parent == folder:
        call("benchmarks.stepping.work:write_bert", folder=str(found))
    return found


def write_zipf(path: Path, tokenizer: Path, rows: int, words: int) -> None:
    """Write a table of texts of unequal lengths, from a tokenizer's words with the frequencies of Zipf's law.

    words  average number of words in a text
    """
    vocabulary = json.loads((tokenizer / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    known = [word for word in vocabulary if word.isascii() and word.isalpha() and len(word) > 2]
    rng = random.Random(0)
    made = []
    for number in range(rows):
        length = 1 + int(rng.expovariate(1 / words))
        text = " ".join(known[int(len(known) ** rng.random()) - 1] for _ in range(length))
        made.append((f"{text.capitalize()}.", ("left", "right", "neutral")[number % 3]))
    _write(path, made)


def _sst2() -> dict[str, Rows]:
    path = Path(os.environ.get("STK_REFERENCE_DATA", "")) / "sst2" / "train.tsv"
    if not path.is_file():
        return {}
    lines = (line.rstrip("\n").split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return {"SST-2": [(line[0], line[1]) for line in lines]}


def _wiki() -> dict[str, Rows]:
    path = Path(os.environ.get("STK_DATA_DIR", "data")) / "wiki_topics.csv"
    if not path.is_file():
        return {}
    with open(path, encoding="utf-8", newline="") as stream:
        return {"Wikipedia leads": [(row["text"], row["label"]) for row in csv.DictReader(stream)]}


def _made_up(count: int) -> Rows:
    rng = random.Random(0)
    return [(" ".join(_words(rng)), ("left", "right")[number % 2]) for number in range(count)]


def _words(rng: random.Random) -> Iterator[str]:
    for _ in range(min(120, 1 + int(rng.lognormvariate(3.0, 0.7)))):
        yield word(rng.randrange(WORDS))


def _write(path: Path, rows: Rows) -> None:
    with open(path, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerows([("text", "label"), *rows])
