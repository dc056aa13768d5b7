"""One rank of a run as the launcher of this machine starts it: python -m toolkit.rank RUN"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from toolkit.failure.importing import explained_import
from toolkit.rundir import RunDir
from toolkit.world import World


def main() -> int:
    """Import the worker, which takes seconds and may fail, and let it train."""
    with explained_import(RunDir(Path(sys.argv[1])), World.from_environment()):
        from toolkit import worker
    return worker.main()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # As in toolkit.worker: not by the interpreter's own end.
    os._exit(code)
