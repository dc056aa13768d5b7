"""How fast a CSV becomes samples that training reads, on two processors.

The same file of made-up texts and the same tokenizer for all. Ours also hashes and checks the file, keeps the
texts in a database and writes the flat arrays; `map` leaves Arrow files of token ids; row by row is what
prepare.py tells of, on a tenth of the rows. Imports are not counted, reading the CSV is.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.rounds import Case, Size, call, in_turns
from benchmarks.tables import Table
from benchmarks.texts import tokenizer

_MAX_TOKENS = 128
_MAP = "HF datasets map, batched"


def measure(size: Size, folder: Path, say: Callable[[str], None]) -> list[Table]:
    """The table of rows a second."""
    model, rows = tokenizer(size, folder), 300 if size.quick else 100_000
    for name, count in (("all", rows), ("tenth", rows // 10)):
        (folder / name).mkdir()
        call("benchmarks.preparing:write", folder=str(folder / name), tokenizer=str(model), rows=count)

    def case(candidate: str, way: str, name: str, *needs: str, **options: Any) -> Case:
        measured = partial(_rows_per_s, way, folder / name, model, options)
        return Case(work=f"{rows:,} rows", candidate=candidate, measure=measured, needs=needs)

    cases = [
        case(_MAP, "mapped", "all", "datasets"),
        case(f"{_MAP}, 2 processes", "mapped", "all", "datasets", processes=2),
        case("row by row", "row_by_row", "tenth"),
        case("ours", "ours", "all"),
    ]
    table = Table(
        title="A CSV to prepared samples",
        goal="at least 1.2 times the better of the two `map`s, ten times row by row",
        unit="rows/s",
        better="more",
        baseline=_MAP,
        digits=0,
    )
    return [table.filled(in_turns(cases, size.rounds, say), "rows_per_s")]


def write(folder: str, tokenizer: str, rows: int) -> None:
    """Write the table."""
    from benchmarks.prepare import write_table

    write_table(Path(folder) / "table.csv", Path(tokenizer), rows, 30)


def _rows_per_s(way: str, table: Path, tokenizer: Path, options: dict[str, Any]) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=table) as folder:
        shutil.copy(table / "table.csv", folder)
        # The tokenizers library computes in threads, as many as there are processes elsewhere.
        threads = {"RAYON_NUM_THREADS": "2", "TOKENIZERS_PARALLELISM": "false" if options else "true"}
        name = f"benchmarks.preparing:{way}"
        found: float = call(name, threads, folder=folder, tokenizer=str(tokenizer), **options)
        return {"rows_per_s": found}


def ours(folder: str, tokenizer: str) -> float:
    """Rows a second of `stk prepare`."""
    import toolkit.data.prepared
    from benchmarks.prepare import ours

    assert toolkit.data.prepared
    return _speed(folder, lambda: ours(Path(folder), Path(tokenizer), _MAX_TOKENS))


def row_by_row(folder: str, tokenizer: str) -> float:
    """Rows a second, one text at a time into a database."""
    from transformers import AutoTokenizer

    from benchmarks.prepare import with_transformers

    AutoTokenizer.from_pretrained(tokenizer)
    return _speed(folder, lambda: with_transformers(Path(folder), Path(tokenizer), _MAX_TOKENS))


def mapped(folder: str, tokenizer: str, processes: int | None = None) -> float:
    """Rows a second of Hugging Face datasets."""
    from datasets import disable_progress_bars, load_dataset
    from transformers import AutoTokenizer

    loaded = AutoTokenizer.from_pretrained(tokenizer)
    disable_progress_bars()

    def tokenize(batch: dict[str, list[str]]) -> Any:
        return loaded(batch["text"], truncation=True, max_length=_MAX_TOKENS)

    def work() -> None:
        table = load_dataset("csv", data_files=f"{folder}/table.csv", cache_dir=f"{folder}/cache")
        table.map(tokenize, batched=True, num_proc=processes)

    return _speed(folder, work)


def _speed(folder: str, work: Callable[[], object]) -> float:
    with open(Path(folder) / "table.csv", "rb") as stream:
        rows = sum(1 for _ in stream) - 1
    started = time.perf_counter()
    work()
    return rows / (time.perf_counter() - started)
