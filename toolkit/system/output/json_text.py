"""JSON for standard output."""

from __future__ import annotations

import json
import sys
from typing import Any

from toolkit.system.output.lasting_streams import is_utf_8


def json_text(value: Any, **options: Any) -> str:
    """Return a JSON document; non-ASCII characters are escaped unless standard output is UTF-8.

    options   options of json.dumps
    """
    # A stream in memory has no encoding, and accepts every character.
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return json.dumps(value, ensure_ascii=not is_utf_8(encoding), **options)
