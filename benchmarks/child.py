"""Call one function in this interpreter: python -m benchmarks.child MODULE:NAME ARGUMENTS ANSWER.

ARGUMENTS are a JSON object; what the function returns goes to the file ANSWER.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path


def main() -> None:
    name, arguments, answer = sys.argv[1:]
    module, _, function = name.partition(":")
    found = getattr(importlib.import_module(module), function)(**json.loads(arguments))
    Path(answer).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
