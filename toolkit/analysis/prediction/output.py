"""Predictions as JSON lines, or as a table."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

from toolkit.analysis.prediction.formats import JSON_LINES
from toolkit.errors import UserError
from toolkit.files import json_value
from toolkit.system.output.csv_cells import harmless

#: The column of predictions without names.
_COLUMN = "prediction"

#: Writes the predictions of some rows. Raises UserError.
Write = Callable[[Sequence[Any]], None]


def writer(stream: TextIO, form: str, columns: Sequence[str] = ()) -> Write:
    """Return a writer of predictions to a stream, in one of toolkit.analysis.prediction.formats.OUTPUTS.

    columns  of a table, written even without predictions; if unknown, the first prediction gives them
    """
    if form == JSON_LINES:
        return lambda predictions: stream.writelines(f"{_json(each)}\n" for each in predictions)
    return _table(stream, columns)


def _json(value: Any) -> str:
    """Return a value as JSON, with null for non-finite numbers, which JSON does not have."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(json_value(value), ensure_ascii=False, allow_nan=False)


def _table(stream: TextIO, columns: Sequence[str]) -> Write:
    """Return a writer of CSV; a quote precedes a cell that would begin a formula."""
    table = csv.writer(stream, lineterminator="\n")
    header: list[str] = []

    def begin(names: Iterable[str]) -> None:
        header.extend(names)
        table.writerow(harmless([*map(_one_line_end, header)]))

    def write(predictions: Sequence[Any]) -> None:
        if columns and not header:
            begin(columns)
        for each in predictions:
            cells = dict(_flat("", each))
            if not header:
                begin(cells)
            if list(cells) != header:
                raise UserError(
                    f"a prediction has the values {', '.join(cells)}, those before it {', '.join(header)}, "
                    "which do not fit into one table: write JSON lines (--format jsonl)"
                )
            table.writerow(harmless([*map(_one_line_end, cells.values())]))

    return write


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The cells of a value: `probabilities.spam`, `prediction.0`."""
    if isinstance(value, Mapping | list):
        inner = value.items() if isinstance(value, Mapping) else enumerate(value)
        top = _COLUMN if isinstance(value, list) and not name else name
        for key, each in inner:
            yield from _flat(f"{top}.{key}" if top else str(key), each)
    else:
        yield name or _COLUMN, value


def _one_line_end(cell: Any) -> Any:
    # The csv module writes a bare carriage return without quotes.
    return cell.replace("\r\n", "\n").replace("\r", "\n") if isinstance(cell, str) else cell
