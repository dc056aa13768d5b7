"""JSON for standard output."""

from __future__ import annotations

import json
import sys
from typing import Any

from toolkit.system.output.lasting_streams import is_utf_8


def json_text(value: Any, **options: Any) -> str:
    """A JSON document; with characters escaped where standard output may not have them.

    options   as json.dumps takes them
    """
    # A text in memory has no encoding, and holds everything.
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return json.dumps(value, ensure_ascii=not is_utf_8(encoding), **options)
