"""JSON for standard output."""

from __future__ import annotations

import codecs
import json
import sys
from typing import Any


def json_text(value: Any, **options: Any) -> str:
    """A JSON document; with characters escaped where standard output may not have them.

    options   as json.dumps takes them
    """
    return json.dumps(value, ensure_ascii=not _is_utf_8(getattr(sys.stdout, "encoding", None)), **options)


def _is_utf_8(encoding: str | None) -> bool:
    # A text in memory has none, and holds everything.
    return encoding is None or codecs.lookup(encoding).name == "utf-8"
