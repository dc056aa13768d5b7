"""The speed of turning a CSV into samples that training reads, on two processors.

All candidates have the same files and tokenizer: many made-up texts, and the real texts of texts.py. Ours
also hashes and checks the file, keeps the texts in a database and writes the flat arrays; `map` writes Arrow
files; row_by_row.py describes the third. Imports are not counted; loading the tokenizer and reading the CSV
are. Caches of the libraries are in a new folder for each round, so that no round finds those of another.
"""

from __future__ import annotations

import csv
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.data.texts import tables, tokenizer, write_zipf
from benchmarks.figures.tables import Table
from benchmarks.measuring.rounds import Case, Size, call, in_turns

_MAX_TOKENS = 128
_MAP = "HF datasets map, batched"
_IDS = f"{_MAP}, ids alone"
_OLD = "row by row, as bert_train_parallel: tokenizer in Python"


def measure(size: Size, folder: Path, say: Callable[[str], None]) -> list[Table]:
    """Return the table of rows a second."""
    model, rows = tokenizer(size, folder), 300 if size.quick else 50_000
    made_up = folder / "made_up.csv"
    write_zipf(made_up, model, rows, 30)
    works = {f"{rows:,} made-up texts": made_up} | ({} if size.quick else tables(size, folder))
    cases = [case for work, table in works.items() for case in _cases(work, table, model, size)]
    table = Table(
        title="A CSV to prepared samples",
        goal="at least 1.2 times the best `map`, ten times row by row",
        unit="rows/s",
        better="more",
        baseline=_MAP,
        digits=0,
        notes=(
            "Ours keeps texts and samples in a database besides; *ids alone* writes neither texts nor masks.",
        ),
    )
    return [table.filled(in_turns(cases, size.rounds, say), "rows_per_s")]


def _cases(work: str, table: Path, model: Path, size: Size) -> Iterator[Case]:
    def case(candidate: str, way: str, *needs: str, **options: Any) -> Case:
        measured = partial(_rows_per_s, way, table, model, options)
        return Case(work=work, candidate=candidate, measure=measured, needs=needs)

    yield case(_MAP, "mapped", "datasets")
    if not size.quick:
        yield case(_IDS, "mapped", "datasets", ids_alone=True)
        yield case(f"{_IDS}, of 10,000", "mapped", "datasets", ids_alone=True, batch_size=10_000)
    yield case(f"{_IDS}, 2 processes", "mapped", "datasets", ids_alone=True, processes=2)
    yield case(_OLD, "row_by_row", in_python=True)
    yield case("row by row, tokenizer in Rust", "row_by_row")
    yield case("ours", "ours")


def _rows_per_s(way: str, table: Path, model: Path, options: dict[str, Any]) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=table.parent) as folder:
        copy = shutil.copy(table, f"{folder}/table.csv")
        variables = {
            # The tokenizers library uses as many threads as other candidates use processes.
            "RAYON_NUM_THREADS": "2",
            "TOKENIZERS_PARALLELISM": "false" if "processes" in options else "true",
            "HF_HOME": f"{folder}/hub",
        }
        name = f"benchmarks.data.preparing:{way}"
        found: float = call(name, variables, table=str(copy), tokenizer=str(model), **options)
        return {"rows_per_s": found}


def ours(table: str, tokenizer: str) -> float:
    """Return the rows a second of `stk prepare`."""
    import tokenizers

    from toolkit.workloads.text_classification.config import TextTable
    from toolkit.workloads.text_classification.data.prepared import prepare

    assert tokenizers
    data = TextTable(
        path=table,
        tokenizer="pretrained",
        tokenizer_path=tokenizer,
        max_tokens=_MAX_TOKENS,
        fold="wordpiece",
        prepared_dir=str(Path(table).with_name("prepared")),
    )
    return _speed(table, lambda: prepare(data))


def row_by_row(table: str, tokenizer: str, in_python: bool = False) -> float:
    """Return the rows a second if each text is tokenized and inserted alone."""
    from benchmarks.data.row_by_row import load_tokenizer, prepare

    # Its imports happen here and are not timed.
    load_tokenizer(Path(tokenizer), in_python, Path(table).parent)
    return _speed(table, lambda: prepare(Path(table), Path(tokenizer), _MAX_TOKENS, in_python=in_python))


def mapped(
    table: str, tokenizer: str, ids_alone: bool = False, processes: int | None = None, batch_size: int = 1000
) -> float:
    """Return the rows a second of Hugging Face datasets."""
    from datasets import disable_progress_bars, load_dataset
    from transformers import AutoTokenizer

    AutoTokenizer.from_pretrained(tokenizer)
    disable_progress_bars()
    lean = {"return_attention_mask": False, "return_token_type_ids": False} if ids_alone else {}

    def work() -> None:
        loaded = AutoTokenizer.from_pretrained(tokenizer)

        def tokenize(batch: dict[str, list[str]]) -> Any:
            return loaded(batch["text"], truncation=True, max_length=_MAX_TOKENS, **lean)

        read = load_dataset("csv", data_files=table, cache_dir=str(Path(table).with_name("cache")))
        removed = ["text"] if ids_alone else None
        read.map(tokenize, batched=True, batch_size=batch_size, num_proc=processes, remove_columns=removed)

    return _speed(table, work)


def _speed(table: str, work: Callable[[], object]) -> float:
    with open(table, encoding="utf-8", newline="") as stream:
        rows = sum(1 for _ in csv.reader(stream)) - 1
    started = time.perf_counter()
    work()
    return rows / (time.perf_counter() - started)
