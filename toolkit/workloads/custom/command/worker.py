"""One rank of a command: it starts the process, watches it, and reports how it ended."""

from __future__ import annotations

import logging
import signal
import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from toolkit.config import load_to_run
from toolkit.errors import RunBusy, RunFailed, UserError
from toolkit.files import read_json, write_json
from toolkit.monitoring.usage.sampling import UsageSampler
from toolkit.reliability.notifications.notify import notify
from toolkit.reliability.oom import oom_kills, ran_out_since
from toolkit.reliability.restart_policy import check_progress
from toolkit.reliability.stop import Stop
from toolkit.reliability.watchdog import Pulse, Watchdog
from toolkit.run.attempts.attempt import Attempt
from toolkit.run.attempts.crash_record import close_open_attempt
from toolkit.run.attempts.outcome import Outcome
from toolkit.run.attempts.records import read_attempts
from toolkit.run.failure.classes import INPUT
from toolkit.run.failure.records import record_failure, write_first
from toolkit.run.fence import hold_run, leave_if_fenced
from toolkit.run.phases import Phase
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.training.attempt.rank_log import is_output, log_to_file
from toolkit.training.attempt.time_limits import lock_patience_s
from toolkit.workloads.custom.command.failure import failure_of
from toolkit.workloads.custom.command.kept_files import import_path, make_work_folder
from toolkit.workloads.custom.command.meeting import Place, environment, find, publish
from toolkit.workloads.custom.command.program import Program, end_earlier_processes
from toolkit.workloads.custom.command.recorded import final, logged, newest_save, save_mark, work_mark
from toolkit.workloads.custom.command.stopping import Caught, Leaving
from toolkit.workloads.custom.command.words import CALL, params_json, words_of

#: The command has saved and left before its end (sysexits' EX_TEMPFAIL).
SAVED = 75

_POLL_S = 0.2
_LOOK_S = 5.0
#: Seconds between looks at the processes of a command whose first one has ended.
_GROUP_S = 1.0
#: Seconds between two scans of the work folder, which may be on a slow file system.
_WALK_S = 60.0
#: Exit statuses after the early warning, as Popen and a shell report them.
_BY_WARNING = frozenset((-signal.SIGUSR2, 128 + signal.SIGUSR2))
#: Exit statuses after any signal to leave.
_BY_SIGNAL = _BY_WARNING.union(*((-each, 128 + each) for each in (signal.SIGINT, signal.SIGTERM)))
#: Seconds until a signal that has ended the command also reaches this process.
_SIGNAL_S = 2.0

log = logging.getLogger("toolkit")


def run_attempt(run: RunDir, world: World, stop: Stop) -> Outcome:
    """Run the command as one rank. Collective.

    Returns FINISHED at once if the run has already finished. Raises RunFailed if the command fails, and other
    errors of the toolkit; failure.json is written before.
    """
    if run.result.exists():
        return Outcome.FINISHED
    if world.master_addr is not None:
        raise UserError(
            "another launcher, such as torchrun, has started this rank, and a command is started by `stk` "
            "itself: leave the launcher out, or make it the command, with task.launch=node"
        )
    with log_to_file(run, world):
        outcome = _Rank(run, world, stop).work()
        if outcome.is_finished and world.is_main:
            notify(run, "end")
        return outcome


class _Rank:
    """One attempt on one rank."""

    def __init__(self, run: RunDir, world: World, stop: Stop) -> None:
        self._run = run
        self._world = world
        self._experiment = load_to_run(run.config)
        self._caught = Caught()
        self._watchdog = Watchdog(run, world, self._experiment.train.hang_timeout_s, self._pulse)
        self._leaving = Leaving(run, world, stop, self._caught)
        self._attempt: Attempt | None = None
        self._phase = Phase.START
        self._saved = save_mark(run)
        self._has_saved = False
        self._written = (0, 0)
        self._has_written = False
        self._has_met = False
        self._number = 0
        self._oom_kills = oom_kills()
        self._step: int | None = None
        self._is_before_end = False
        self._looked = self._walked = time.monotonic()

    def work(self) -> Outcome:
        """Hold the run, run the command, record how it ended."""
        with ExitStack() as stack:
            try:
                stack.enter_context(hold_run(self._run, self._world, lock_patience_s(self._experiment.train)))
                stack.callback(self._caught.restore)
                self._caught.install()
                self._begin()
                stack.enter_context(self._watchdog)
                stack.enter_context(UsageSampler(self._run, self._world, "cpu"))
                return self._work()
            except RunBusy:
                raise
            except BaseException as error:
                leave_if_fenced(self._run, self._world.nonce)
                if isinstance(error, FileNotFoundError) and not self._run.path.exists():
                    again = f"`stk resume {self._run.run_id}` continues it in its new place"
                    what = f"the run's folder {self._run.path} is gone: was the project moved? {again}"
                    raise UserError(what) from error
                if not isinstance(error, _CommandFailed | _MisusedToolkit):
                    record_failure(self._run, self._world, self._phase, self._step or 0, error)
                if self._attempt is not None:
                    self._attempt.failed(self._step)
                raise

    def _begin(self) -> None:
        if not self._world.is_main:
            return
        close_open_attempt(self._run, self._world)
        check_progress(self._run)
        self._attempt = Attempt(self._run, self._world)
        self._run.checkpoints.mkdir(exist_ok=True)
        make_work_folder(self._run, self._experiment)
        self._written = work_mark(self._run)
        publish(self._run, self._world, self._attempt.number)

    def _pulse(self) -> Pulse:
        return Pulse(phase=self._phase, step=self._step or 0)

    def _work(self) -> Outcome:
        self._phase = Phase.RENDEZVOUS
        timeout_s = self._experiment.train.rendezvous_timeout_s
        place = find(self._run, self._world, timeout_s, self._leaving.look)
        if place is None:
            self._leave_with_failed_peer()
            self._end(Outcome.YIELDED)
            return Outcome.YIELDED
        self._phase, self._number = Phase.PROGRAM, place.attempt
        self._leaving.attempt = place.attempt
        # With `launch: node` only the first rank of each host starts a process.
        starts_one = self._experiment.task.launch == "each" or self._world.local_rank == 0
        outcome = self._run_command(place) if starts_one else Outcome.FINISHED
        self._end(outcome)
        return self._conclude(outcome)

    # -- the command

    def _run_command(self, place: Place) -> Outcome:
        run, world, experiment = self._run, self._world, self._experiment
        words = words_of(experiment, run)
        environ = environment(
            run, world, place, by_node=experiment.task.launch == "node", params=params_json(experiment, run)
        )
        if places := import_path(run, Path(experiment.task.folder), environ):
            environ["PYTHONPATH"] = places
        if not world.job:
            end_earlier_processes(run)
        path = run.log(world.nonce, world.rank)
        # In a job, standard output is already this log.
        shown = world.is_main and not is_output(path)
        program = Program(words, run.work, environ, path, shown=shown)
        try:
            self._announce({"pid": program.pid})
            self._watchdog.beat()
            if self._attempt is not None:
                self._attempt.started(None, bool(place.latest))
                self._attempt.noted(saved=False, wrote=False)
                self._attempt.stepped()
            code = self._wait(program)
        finally:
            program.close()
        return self._outcome(code, program)

    def _wait(self, program: Program) -> int:
        while (code := program.wait(_POLL_S)) is None:
            self._leaving.pass_on(program)
            if time.monotonic() - self._looked > _LOOK_S:
                self._look()
        if code in _BY_SIGNAL:
            deadline = time.monotonic() + _SIGNAL_S
            while not self._leaving.look() and time.monotonic() < deadline:
                time.sleep(_POLL_S)
        # Let what a wrapper has started save; the wrapper, such as a shell, ends at SIGTERM.
        while code != SAVED and self._leaving.look() and program.lives and not self._leaving.is_over():
            self._leaving.pass_on(program)
            # To see whether it lives, all processes of the host are listed.
            time.sleep(_GROUP_S)
        self._look(has_ended=True)
        return code

    def _look(self, *, has_ended: bool = False) -> None:
        """Record the ranks, and the progress of the command: its logged steps and its saves."""
        self._looked = time.monotonic()
        known, found = self._step, logged(self._run, self._number)
        if found is not None:
            self._step, self._is_before_end = found.step, found.is_before_end
        if self._attempt is None:
            return
        leave_if_fenced(self._run, self._world.nonce)
        self._meet(self._attempt)
        if found is not None and known is None:
            self._attempt.started(found.first_step, found.resumed)
            self._attempt.stepped_at(found.first_step_time)
        if not self._has_saved and save_mark(self._run) != self._saved:
            self._has_saved = True
            self._attempt.noted(saved=True)
        if not self._has_written and (has_ended or self._looked - self._walked > _WALK_S):
            self._walked = self._looked
            if work_mark(self._run) != self._written:
                self._has_written = True
                self._attempt.noted(wrote=True)

    def _outcome(self, code: int, program: Program) -> Outcome:
        """Return the outcome of an exit status. Raises _CommandFailed or _MisusedToolkit.

        failure.json is written before.
        """
        self._leaving.look()
        if code == -signal.SIGKILL and self._leaving.is_over():
            log.warning("the command was killed; it had not ended in time after SIGTERM")
        has_returned = CALL not in self._experiment.task.run or self._run.returned.exists()
        # Lightning, for one, ends with status 0 at SIGTERM.
        was_cut_short = self._leaving.is_asked and self._is_before_end
        # Rank 0 decides: on other hosts the files of the run may be older.
        if code == 0 and (not self._world.is_main or (has_returned and not was_cut_short)):
            if self._leaving.is_asked and self._world.is_main and not self._leaving.has_failed_peer:
                log.warning(
                    "the command was asked to leave and ended with status 0, so the run counts as done; the "
                    "option --fresh starts it anew. To continue later, a command must end with status %d",
                    SAVED,
                )
            return Outcome.FINISHED
        self._leave_with_failed_peer()
        # Python removes its handlers before it exits, and the warning may arrive just then.
        was_ended_by_warning = self._leaving.has_warned and code in _BY_WARNING
        if code == SAVED or self._leaving.is_asked or was_ended_by_warning:
            # If one rank leaves, all leave.
            has_left = code == SAVED and not self._leaving.has_warned
            self._leaving.request("saved" if has_left else "requested")
            return Outcome.YIELDED
        is_oom = ran_out_since(self._oom_kills)
        record = failure_of(self._world, code, program.last_output(), self._step, is_oom=is_oom)
        write_first(self._run, record)
        raise (_MisusedToolkit if record["class"] == INPUT else _CommandFailed)(record["message"])

    # -- the other ranks

    def _leave_with_failed_peer(self) -> None:
        """Raise _CommandFailed if another rank has failed."""
        if self._leaving.has_failed_peer:
            raise _CommandFailed("another rank has failed; failure.json has the cause")

    def _announce(self, facts: Mapping[str, Any]) -> None:
        """Announce this rank's process to the other ranks."""
        world = self._world
        path = self._run.process(world.nonce, world.rank)
        path.parent.mkdir(exist_ok=True)
        write_json(path, {"rank": world.rank, "host": socket.gethostname(), "node": world.node, **facts})

    def _meet(self, attempt: Attempt) -> None:
        """Record the ranks, when all of them have announced themselves."""
        if self._has_met:
            return
        paths = [self._run.process(self._world.nonce, rank) for rank in range(self._world.size)]
        found = [read_json(path) for path in paths]
        if None not in found:
            attempt.met([{key: each[key] for key in ("rank", "host")} for each in found])
            self._has_met = True

    def _end(self, outcome: Outcome) -> None:
        self._announce({"ended": time.time(), "outcome": outcome.value})

    def _conclude(self, outcome: Outcome) -> Outcome:
        """On rank 0, wait for the other ranks and record the outcome. Return the outcome of the attempt."""
        if self._attempt is None:
            return outcome
        ends = [self._end_of(rank) for rank in range(self._world.size)]
        # It may have been frozen.
        leave_if_fenced(self._run, self._world.nonce)
        self._meet(self._attempt)
        if any(each["outcome"] != Outcome.FINISHED.value for each in ends):
            self._attempt.ended(self._step, self._leaving.why or "requested")
            if not self._has_saved and newest_save(self._run) is None:
                known = "its files in work/ stay"
                if not any(each.wrote for each in read_attempts(self._run)):
                    known = "unless it saves elsewhere, as in a linked folder of work/, it starts over again"
                log.warning("the command has saved nothing in STK_CHECKPOINT_DIR: %s", known)
            return Outcome.YIELDED
        self._finish()
        return Outcome.FINISHED

    def _end_of(self, rank: int) -> Mapping[str, Any]:
        """Wait for a rank to end, and return its record. The launcher ends this rank if that one dies.

        Raises _CommandFailed if any rank has failed.
        """
        path = self._run.process(self._world.nonce, rank)
        while "ended" not in (found := read_json(path) or {}):
            self._leaving.look()
            self._leave_with_failed_peer()
            time.sleep(_POLL_S)
        return found

    def _finish(self) -> None:
        assert self._attempt is not None
        result: dict[str, Any] = {
            "state": "finished",
            **final(self._run),
            "best": {},
            "attempts": self._attempt.number,
            "seconds": round(self._attempt.seconds(), 3),
        }
        self._phase = Phase.REPORT
        from toolkit.report.rendering.writing import write_final_report  # slow to import

        write_final_report(self._run, result)
        write_json(self._run.result, result)
        # Last: an attempt that finished without a result would be repeated, and not count as a crash.
        self._attempt.ended(self._step, "finished")


class _CommandFailed(RunFailed):
    """The command failed; failure.json already has the record."""


class _MisusedToolkit(UserError):
    """The command failed because of a wrong call to the toolkit; failure.json already has the record."""
