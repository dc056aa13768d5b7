"""The queries of the page about prepared sets work."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.docs.readme import ROOT
from toolkit.data.prepared.results import Result, record_result
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.prepared import prepare

PAGE = (ROOT / "toolkit/workloads/text_classification/docs/prepared-set.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """The database of a small study: forty mails, two of them equal, and two finished runs."""
    folder = tmp_path_factory.mktemp("study")
    rows = [(" ".join(f"w{word}" for word in range(n)), ("ham", "spam")[n % 2]) for n in range(1, 40)]
    lines = [("text", "label"), *rows, rows[-1]]
    (folder / "mails.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in lines))
    prepared = prepare(
        TextTable(path=str(folder / "mails.tsv"), max_tokens=8, fold="word", prepared_dir=str(folder))
    )
    facts = {"finished": "2026-11-21", "name": "mails", "model": "docnn", "task": "text_classification"}
    for seed in (0, 1):
        scores = {"test": {"accuracy": 0.75 + seed / 8}, "validation": {"accuracy": 0.5}}
        record_result(prepared.path, Result(run=f"mails-{seed}", seed=seed, step=9, metrics=scores, **facts))
    with closing(sqlite3.connect(prepared.database)) as connection:
        yield connection


def test_the_page_has_queries() -> None:
    assert len(QUERIES) >= 9


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_a_query_of_the_page_has_an_answer(database: sqlite3.Connection, query: str) -> None:
    assert database.execute(query).fetchall() != []


def test_answers_are_as_expected(database: sqlite3.Connection) -> None:
    """Each question is above its query."""
    asked = dict(re.findall(r"^([A-Z][^\n]*\?)\n\n```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))

    def answer(question: str) -> list[tuple[object, ...]]:
        return database.execute(next(query for asks, query in asked.items() if question in asks)).fetchall()

    assert answer("How many fragments")[:2] == [(1, 8), (2, 8)]
    assert [row[0] for row in answer("fragments of the longest text")] == [0, 1, 2, 3, 4]
    assert answer("sample 3 from")[0][1:] == (5, 0)
    assert [(row[0], row[2]) for row in answer("more than once")] == [(2, 40)]
    assert answer("Which run is the best")[0] == ("mails-1", "docnn", 1, 9, 0.875)
    assert answer("seeds") == [("mails", 2, 0.8125, 0.125)]


def test_the_page_has_the_columns_of_the_tables(database: sqlite3.Connection) -> None:
    rows = re.findall(r"^\| `(\w+)`[^|]*\|[^|]*\| `([\w, ]+)`", PAGE, re.MULTILINE)
    documented = {name: columns.split(", ") for name, columns in rows}
    known = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert set(documented) == {*known, "fragments"}
    for name, columns in documented.items():
        found = [row[1] for row in database.execute(f"PRAGMA table_info({name})")]
        assert found == columns, name


def test_the_page_has_the_files_of_a_set(database: sqlite3.Connection) -> None:
    (path,) = (Path(row[2]).parent for row in database.execute("PRAGMA database_list"))
    named = set(re.findall(r"\b([a-z]+\.(?:sqlite|bin|json))\b", PAGE))
    assert named - {"tokenizer.json"} <= {file.name for file in path.iterdir()}
