"""The formats of rows and of predictions. Imports nothing."""

from __future__ import annotations

TABLES = ("csv", "tsv")
JSON_LINES, LINES = "jsonl", "lines"
#: Formats that can be read, and that can be written.
INPUTS = (*TABLES, JSON_LINES, LINES)
OUTPUTS = ("csv", JSON_LINES)
