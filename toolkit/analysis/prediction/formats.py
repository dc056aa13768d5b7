"""The formats of rows and of predictions. Imports nothing."""

from __future__ import annotations

TABLES = ("csv", "tsv")
JSON_LINES, LINES = "jsonl", "lines"
#: What can be read, and what can be written.
INPUTS = (*TABLES, JSON_LINES, LINES)
OUTPUTS = ("csv", JSON_LINES)
