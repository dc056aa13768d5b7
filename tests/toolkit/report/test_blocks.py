"""Tables as values."""

from __future__ import annotations

from toolkit.report.blocks import table, turned

TABLE = table(
    "Runs",
    ["run", "loss", "f1"],
    [["a", "1", "2"], ["b", "3", "4"]],
    feet=(("all", "4", "6"),),
    best=frozenset({(0, 1), (1, 2)}),
    optional=(1, 2),
)


def test_transposed_table_keeps_its_best_cells() -> None:
    found = turned(TABLE, "metric")
    assert found.head == ("metric", "a", "b")
    assert found.rows == (("loss", "1", "3"), ("f1", "2", "4"))
    assert found.best == {(0, 1), (1, 2)}


def test_table_without_a_column_keeps_the_marks_of_the_others() -> None:
    found = TABLE.without(1)
    assert (found.head, found.rows) == (("run", "f1"), (("a", "2"), ("b", "4")))
    assert (found.feet, found.best, found.optional, found.texts) == ((("all", "6"),), {(1, 1)}, (1,), 1)
