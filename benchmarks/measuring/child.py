"""Call one function in this interpreter: python -m benchmarks.measuring.child MODULE:NAME ARGUMENTS ANSWER.

ARGUMENTS are a JSON object; what the function returns goes to the file ANSWER.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path


def main() -> None:
    name, arguments, answer = sys.argv[1:]
    module, _, function = name.partition(":")
    found = getattr(importlib.import_module(module), function)(**json.loads(arguments))
    Path(answer).write_text(json.dumps(found))
    sys.stdout.flush()
    # A thread of gloo that still runs at interpreter exit may abort the process (torch 2.13).
    os._exit(0)


if __name__ == "__main__":
    main()
