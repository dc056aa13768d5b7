"""The worker: one process of a run. `run_attempt` trains as one rank; `main` is the entry of torchrun.

torchrun --nproc-per-node 2 -m toolkit.training.worker configs/quickstart.yaml key=value …
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from toolkit.config import load, load_to_run
from toolkit.exit_codes import ExitCode
from toolkit.reliability.notifications.notify import notify
from toolkit.reliability.stop import Stop, StopFlag, stop_signals
from toolkit.run.attempts.outcome import Outcome
from toolkit.run.create_run import create_run
from toolkit.run.failure.exit_status import exit_status
from toolkit.run.folder_trust import check_run
from toolkit.run.run_dir import RunDir, experiment_dir
from toolkit.system.output.lasting_streams import outlive_streams
from toolkit.system.process_main import process_main
from toolkit.system.world import World
from toolkit.task import task_class
from toolkit.training.attempt.rank_log import log_to_file
from toolkit.training.attempt.stages import RankAttempt
from toolkit.training.output.progress_display import choose_display


def run_attempt(run: RunDir, world: World, stop: Stop) -> Outcome:
    """Train a run as one of its ranks, from its latest good checkpoint. Collective.

    Returns FINISHED at once if the run has finished before. Raises StkError, or any error of the task;
    failure.json has been written by then.
    """
    if run.result.exists():
        return Outcome.FINISHED
    attempt = RankAttempt(run, world)
    with log_to_file(run, world):
        outcome = attempt.run(stop)
        if outcome is Outcome.FINISHED and world.is_main:
            notify(run, "end")
        return outcome


def main(argv: Sequence[str] | None = None) -> int:
    """Run as one rank of torchrun, or alone; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m toolkit.training.worker", description=__doc__)
    parser.add_argument("config", help="experiment file, or the folder of a run to continue")
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    parser.add_argument("--prepare", action="store_true", help="only build the prepared data")
    arguments = parser.parse_args(argv)
    work = _prepare if arguments.prepare else _main
    path = Path(arguments.config)
    return exit_status(lambda: work(path, arguments.overrides), path)


def _prepare(path: Path, overrides: Sequence[str]) -> int:
    if path.is_dir():
        experiment = load_to_run(path / "config.yaml")
        check_run(RunDir(path.resolve()))
    else:
        experiment = load(path, overrides)
    display = choose_display(is_main=True)
    try:
        display.message(task_class(experiment).prepare(experiment, display.preparing))
    finally:
        display.stop()
    return 0


def _main(path: Path, overrides: Sequence[str]) -> int:
    outlive_streams()
    stop = StopFlag().install(*stop_signals())
    if (path / "config.yaml").is_file():
        target = RunDir(path.resolve())
        check_run(target)
    else:
        target = create_run(load(path, overrides), experiment_dir())
    outcome = run_attempt(target, World.from_environment(), stop)
    return 0 if outcome is Outcome.FINISHED else ExitCode.YIELDED


if __name__ == "__main__":
    process_main(main)
