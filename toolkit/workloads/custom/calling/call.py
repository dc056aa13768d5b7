"""Call a function in a job, and hand over what it returns:

python -P -m toolkit.workloads.custom.calling.call '{"function": "work:train", "args": [], "kwargs": {}}'

The function works as any command does: it may call `stk.current_run()`, save and leave.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.files import write_atomic
from toolkit.run.fence import leave_if_fenced
from toolkit.system.distributions import load_code
from toolkit.workloads.custom.calling.plain_values import NotPlain, plain
from toolkit.workloads.custom.script.place import find_place


def main(argv: Sequence[str]) -> int:
    """Call the function, write what it returns, and return the exit status. Rank 0 writes."""
    request = json.loads(argv[0])
    try:
        value = _called(request)
    except SystemExit as left:
        # With another status it goes on later, or has failed.
        if left.code not in (None, 0):
            raise
        value = None
    except Exception as error:
        # Without the lines of this file.
        inner = error.__traceback__ and error.__traceback__.tb_next and error.__traceback__.tb_next.tb_next
        traceback.print_exception(error.with_traceback(inner))
        return 1
    return _hand_over(value, str(request["function"]))


def _called(request: Mapping[str, Any]) -> Any:
    if "path" in request:
        sys.path.insert(0, str(Path(request["path"]).absolute()))
    os.chdir(request.get("at", "."))
    sys.argv[1:] = []
    function = load_code(request["function"])
    return function(*request["args"], **request["kwargs"])


def _hand_over(value: Any, function: str) -> int:
    place = find_place()
    if not place.is_main:
        return 0
    try:
        document = {"value": plain(value, "result")}
    except NotPlain as error:
        sys.stderr.write(
            f"UserError: {error}, so the result of {function} cannot be written as JSON: return numbers, "
            "texts, lists and dictionaries of these; write anything else to a file in "
            "stk.current_run().folder and return its path\n"
        )
        return 1
    leave_if_fenced(place.run, place.nonce)
    place.run.returned.parent.mkdir(exist_ok=True)
    # With what Python's JSON has beside the standard: NaN, infinities, and any text escaped.
    write_atomic(place.run.returned, json.dumps(document, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
