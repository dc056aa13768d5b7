"""One rank of a run as the launcher of this machine starts it: python -m toolkit.launch.rank_main RUN"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from toolkit.config import load_resolved
from toolkit.exit_codes import ExitCode
from toolkit.registry import worker_of
from toolkit.reliability.stop import StopFlag, stop_signals, stop_with_launcher
from toolkit.run.failure.exit_status import exit_status
from toolkit.run.failure.import_errors import record_import_error
from toolkit.run.kept_code.code_snapshot import check_kept
from toolkit.run.run_dir import RunDir
from toolkit.system.output.lasting_streams import outlive_streams
from toolkit.system.process_main import process_main
from toolkit.system.world import World


def main(argv: Sequence[str]) -> int:
    """Import the worker of the run's task, which takes seconds and may fail, and run it."""
    # Called first: if the launcher dies during the import, this rank must end, too.
    stop_with_launcher(os.environ)
    outlive_streams()
    run, world = RunDir(Path(argv[0]).resolve()), World.from_environment()

    def work() -> int:
        kind = load_resolved(run.config).task.kind
        with record_import_error(run, world):
            check_kept(run)
            worker = worker_of(kind)
        stop = StopFlag().install(*stop_signals())
        outcome = worker(run, world, stop)
        return 0 if outcome.is_finished else ExitCode.YIELDED

    return exit_status(work, run.path)


if __name__ == "__main__":
    process_main(main)
