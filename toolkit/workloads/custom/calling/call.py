"""Call a function in a job, and write its result:

python -P -m toolkit.workloads.custom.calling.call '{"function": "work:train", "args": [], "kwargs": {}}'

The function works like any command: it may call `stk.current_run()`, save a checkpoint and leave.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolkit.files import write_atomic
from toolkit.run.fence import leave_if_fenced
from toolkit.system.distributions import load_code
from toolkit.workloads.custom.calling.plain_values import NotPlain, plain
from toolkit.workloads.custom.script.place import find_place


def main(argv: Sequence[str]) -> int:
    """Call the function, write its result on rank 0, and return the exit status."""
    request = json.loads(argv[0])
    try:
        if "path" in request:
            sys.path.insert(0, str(Path(request["path"]).absolute()))
        os.chdir(request.get("at", "."))
        sys.argv[1:] = []
        function = load_code(request["function"])
        value = function(*request["args"], **request["kwargs"])
    except SystemExit as left:
        # Any other status means that it continues later, or has failed.
        if left.code not in (None, 0):
            raise
        value = None
    except Exception as error:
        # Leave the frame of this file out of the traceback.
        inner = error.__traceback__ and error.__traceback__.tb_next
        traceback.print_exception(error.with_traceback(inner))
        return 1
    return _write_result(value, str(request["function"]))


def _write_result(value: Any, function: str) -> int:
    place = find_place()
    if not place.is_main:
        return 0
    try:
        document = {"value": plain(value, "result")}
    except NotPlain as error:
        sys.stderr.write(
            f"toolkit.errors.UserError: {error}, so the result of {function} cannot be written as JSON: "
            "return numbers, texts, lists and dictionaries of these; write anything else to a file in "
            "stk.current_run().folder and return its path\n"
        )
        return 1
    leave_if_fenced(place.run, place.nonce)
    place.run.returned.parent.mkdir(exist_ok=True)
    # Python's JSON also has NaN and infinities, and it escapes all text that is not ASCII.
    write_atomic(place.run.returned, json.dumps(document, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
