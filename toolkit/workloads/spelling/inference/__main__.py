"""Use a run from another program, with the run's own code:

python -P -m toolkit.workloads.spelling.inference RUN_DIR '{"jobs": …}'
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from toolkit.run.run_dir import RunDir
from toolkit.system.process_main import exit_status, process_main, take_stdout
from toolkit.workloads.spelling.inference.requests import Request


def main(argv: Sequence[str]) -> int:
    """Answer a request and return the exit status."""
    # Output of libraries must not mix with the lines.
    output = take_stdout(newline="")

    def do() -> None:
        # Imported here, because it takes seconds, and `exit_status` handles Ctrl-C.
        from toolkit.workloads.spelling.inference.process_lines import work

        work(RunDir(Path(argv[0])), Request.from_json(argv[1]), output)

    return exit_status(do)


if __name__ == "__main__":
    process_main(main)
