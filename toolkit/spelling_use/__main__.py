"""Using a run for another program, with the run's own code:

python -P -m toolkit.spelling_use RUN_DIR '{"jobs": …}'
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from toolkit.errors import StkError
from toolkit.rundir import RunDir
from toolkit.spelling_use.requests import Request

_INTERRUPTED = 130


def main(argv: Sequence[str]) -> int:
    """Do what is asked and return the exit status."""
    # What libraries print must not get between the lines.
    output = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="")
    os.dup2(2, 1)
    try:
        # Here, as it takes seconds in which somebody may press Ctrl-C.
        from toolkit.spelling_use.work import work

        work(RunDir(Path(argv[0])), Request.from_json(json.loads(argv[1])), output)
    except StkError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has seen enough.
        return 0
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    # Not sys.exit: see toolkit.worker.
    os._exit(code)
