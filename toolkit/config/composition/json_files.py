"""JSON files in place of a mapping in an experiment."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from toolkit.config.composition.yaml_files import MAX_BYTES
from toolkit.files import read_regular


class NotJson(ValueError):
    """A file that holds no JSON object; the message has the reason."""


def read_json_mapping(name: str) -> dict[str, Any]:
    """The object in a JSON file, in its order. Raises NotJson."""
    try:
        content = json.loads(read_regular(Path(name), MAX_BYTES), object_pairs_hook=_unique)
    except OSError as error:
        raise NotJson(f"found {name!r}, a file that cannot be read: {error.strerror}") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise NotJson(f"found {name!r}, which is not JSON: {error.msg} in {place}") from None
    except NotJson as error:
        raise NotJson(f"found {name!r}, in which {error}") from None
    except (ValueError, RecursionError) as error:
        raise NotJson(f"found {name!r}, which is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise NotJson(f'found {name!r}, which holds no JSON object: {{"host": number, …}}')
    return content


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if twice:
        raise NotJson(f"{twice[0]!r} is given twice")
    return dict(pairs)
