"""Predict with a run for another program, with the run's own code:

python -P -m toolkit.analysis.prediction RUN_DIR '{"file": …}'
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from toolkit.analysis.prediction.request import Request
from toolkit.run.run_dir import RunDir
from toolkit.system.process_main import exit_status, process_main, take_stdout


def main(argv: Sequence[str]) -> int:
    """Answer the request and return the exit status."""
    # Output of libraries must not mix with the predictions.
    output = take_stdout(newline="")

    def work() -> None:
        # Imported late, since it takes seconds in which Ctrl-C may be pressed.
        from toolkit.analysis.prediction.predict import answer

        answer(RunDir(Path(argv[0])), Request(**json.loads(argv[1])), output)

    return exit_status(work)


if __name__ == "__main__":
    process_main(main)
