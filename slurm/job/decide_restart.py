"""Decide whether and how to restart a run after a step that did not finish it. The batch script runs this.

python -P -m slurm.job.decide_restart RUN CODE [in-place]
python -P -m slurm.job.decide_restart CONFIG CODE [key=value …]

After a step that saved and exited, rank 0 has usually requeued the job already. This module handles failures,
and stops after which rank 0 could not requeue. It may be slow: only an idle job waits for it. It exits with
RESTART_STEP if the script should start the step again; the script passes `in-place` if it can do that.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from slurm.client import programs
from slurm.client.hostlist import expand
from slurm.client.stop_reason import (
    REQUESTED,
    StopEvidence,
    component_ids,
    end_of,
    is_array_task,
    is_back,
    length_s,
    told_end,
)
from slurm.config.resources import Resources
from slurm.job.requeue import (
    Job,
    continue_run,
    is_settled,
    seen_before,
    start_again,
    wants_chain,
    why_continued,
    why_of,
)
from slurm.job.save_budget import measured_lead_s
from slurm.job.when_to_stop import margin_s
from slurm.status.liveness import is_training_here
from slurm.status.submissions import last_resources, last_submission
from slurm.submission.batch.batch_script import IN_PLACE
from slurm.submission.checks.preflight import check_fits, read_facts
from slurm.submission.submit_job import names_of_slurm, without_hosts
from toolkit.config import load, load_resolved
from toolkit.config.secrets import concealed
from toolkit.errors import SchedulerError, SlurmUnavailable, StkError
from toolkit.exit_codes import ExitCode
from toolkit.files import read_end
from toolkit.reliability import restart_policy
from toolkit.reliability.notifications.notify import notify
from toolkit.reliability.restart_policy import Decision
from toolkit.run.attempts.crash_record import CrashHint, record_crash
from toolkit.run.attempts.records import AttemptRecord, explain_last, read_attempts
from toolkit.run.create_run import run_of
from toolkit.run.disk_reserve import give_up_reserve, keep_reserve
from toolkit.run.events import note_event, read_events, save_events
from toolkit.run.failure.classes import FAILURE_CLASSES, NO_ROOM, OOM_KILLED
from toolkit.run.failure.full_disk import note_full_disk
from toolkit.run.run_dir import RunDir, find_run

#: Seconds for which a request is repeated if no controller answers, before the user is told.
_PATIENCE_S = 600.0
#: Seconds at the end of a job in which nothing is begun.
_LAST_S = 60.0
#: Seconds between attempts to record a crash on a file system that does not answer.
_REPEAT_S = (1.0, 10.0, 60.0)
#: Seconds for which a step may take to end after its srun, and between two queries about it.
_STEP_END_S, _STEP_PAUSE_S = 60.0, 2.0
#: Slurm's messages of a lack of memory, and the bytes at the end of a job's log in which they are searched.
_OOM_OF_TASKS = re.compile(r"srun: error: .*: tasks? ([\d,-]+): Out Of Memory")
_OOM_OF_STEP = re.compile(r"[Dd]etected \d+ oom[-_ ]kill event|[Ee]xceeded (?:job |step )?memory limit")
_OOM_BYTES = 1 << 16
#: Event: a step is started again in its job.
_IN_PLACE_EVENT = "started_in_place"
#: Nothing is left to do.
_HANDLED = "this stop has been handled: stk status says how"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The step that has ended.

    attempt    its record; None if the step ended before it wrote one
    is_newest  whether no other attempt has begun since
    """

    run: RunDir
    job: Job
    code: int
    attempt: AttemptRecord | None
    is_newest: bool

    @classmethod
    def of(cls, run: RunDir, code: int, environ: Mapping[str, str]) -> Step:
        job = Job.around(environ)
        attempts = read_attempts(run)
        this = (job.environ["SLURM_JOB_ID"], job.restart)
        before = _attempts_before(run, *this)
        own = [each for each in attempts if (each.job_id, each.restart) == this and each.attempt > before]
        attempt = own[-1] if own else None
        is_newest = attempt is attempts[-1] if own else not is_training_here(run)
        return cls(run=run, job=job, code=code, attempt=attempt, is_newest=is_newest)

    @property
    def was_orderly(self) -> bool:
        """Whether the step saved and ended after a request to stop, without a failure."""
        attempt = self.attempt
        return attempt is not None and attempt.time_end is not None and attempt.why not in FAILURE_CLASSES


def _attempts_before(run: RunDir, job_id: str, restart: int) -> int:
    """Return the number of the job's last attempt that was restarted in place; 0 before the first restart."""
    events = [event.facts for event in read_events(run, _IN_PLACE_EVENT)]
    own = [facts for facts in events if (facts["job_id"], facts["restart"]) == (job_id, restart)]
    return max((facts["attempt"] for facts in own), default=0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The action as a sentence, and whether the script must start the step again."""

    text: str
    again: bool = False


def decide(
    run: RunDir,
    code: int,
    environ: Mapping[str, str],
    patience_s: float = _PATIENCE_S,
    *,
    in_place: bool = False,
) -> Outcome:
    """Continue the run if it should continue; return the action.

    in_place  whether the script can start the step again

    Raises SchedulerError if no controller answered, or Slurm refused all ways.
    """
    if run.result.exists():
        return Outcome("the run has finished")
    step = Step.of(run, code, environ)
    if not step.is_newest:
        return Outcome("another attempt of the run has taken over")
    try:
        if step.was_orderly:
            return Outcome(_after_stop(step, patience_s))
        if _was_continued(step):
            return Outcome(_HANDLED)
        return _after_failure(step, patience_s, in_place)
    except StkError as error:
        note_event(run, "requeue_failed", job_id=step.job.id, reason=str(error))
        raise


def _after_stop(step: Step, patience_s: float) -> str:
    """Requeue the run, if its rank 0 could not."""
    assert step.attempt is not None
    assert step.attempt.time_end is not None
    if is_settled(step.run, step.attempt.time_end):
        return _HANDLED
    facts = step.job.facts(patience_s)
    why = why_of(step.job, facts, seen_before(step.run, step.job))
    explain_last(step.run, why)
    continue_run(step.run, step.job, facts, why, patience_s)
    return f"the run was stopped: {why}"


def _was_continued(step: Step) -> bool:
    """Whether rank 0 continued the run, but could not record its end, as on a full disk."""
    attempt, submission = step.attempt, last_submission(step.run)
    since = attempt.time_start if attempt else submission and submission.time
    why = why_continued(step.run, step.job, since or 0.0)
    if why is not None and attempt is not None and attempt.why is None:
        explain_last(step.run, why)
    return why is not None


def _if_others_are_left(run: RunDir, hosts: list[str], resources: Resources) -> list[str]:
    """Return the hosts to exclude; none of them, with an event, if the job could not start without them."""
    if not hosts:
        return hosts
    try:
        facts = read_facts(resources)
    except SchedulerError:
        return hosts
    fewer = without_hosts(resources, hosts)
    reasons = check_fits(fewer, facts)
    if not reasons or check_fits(resources, facts):
        return hosts
    kept = set(expand(fewer.exclude or "")) - set(expand(resources.exclude or ""))
    note_event(run, "not_excluded", hosts=sorted(kept), reasons=reasons)
    return []


def _after_failure(step: Step, patience_s: float, in_place: bool) -> Outcome:
    """Continue the run if Slurm stopped the job; otherwise handle the failure."""
    run, job = step.run, step.job
    facts = job.facts(patience_s)
    if (stopped := _if_stopped(step, facts, patience_s)) is not None:
        return stopped
    decision = _decision(step)
    if decision.action != "retry":
        note_event(run, "not_requeued", job_id=job.id, why=decision.why)
        notify(run, "hold" if decision.action == "hold" else "failure", decision.why)
        return Outcome(f"not started again: {decision.why}")
    resources = last_resources(run)
    hosts = _if_others_are_left(run, names_of_slurm(decision.exclude, job.environ), resources)
    nodes = set(expand(job.environ.get("SLURM_JOB_NODELIST", "")))
    # A requeued task of an array has left such a host: Slurm was told, and not the resources.
    has_left = is_array_task(job.environ) and bool(nodes) and nodes.isdisjoint(hosts)
    avoids = not has_left and without_hosts(resources, hosts) != resources
    is_ending = in_place and _is_ending(run, facts, told_end(job.environ))
    # A step without a record of its attempt is requeued instead: it could not be counted here.
    attempt = step.attempt if in_place and not avoids and not is_ending else None
    if attempt is not None:
        has_ended = _has_ended(attempt, job, facts, min(patience_s, _STEP_END_S))
        # Slurm may have stopped the job during the wait.
        facts = job.facts(patience_s)
        if (stopped := _if_stopped(step, facts, patience_s)) is not None:
            return stopped
        is_ending = _is_ending(run, facts, told_end(job.environ))
        if has_ended and not is_ending:
            this = {"job_id": job.environ["SLURM_JOB_ID"], "restart": job.restart}
            note_event(run, _IN_PLACE_EVENT, why=decision.why, **this, attempt=attempt.attempt)
            notify(run, "requeue", decision.why)
            return Outcome(f"starting again in this job: {decision.why}", again=True)
    chained = avoids or is_ending or wants_chain(run, decision.why)
    start_again(run, job, decision.why, chained, exclude=hosts, patience_s=patience_s)
    notify(run, "requeue", decision.why)
    return Outcome(f"starting again: {decision.why}")


def _if_stopped(step: Step, facts: Mapping[str, str], patience_s: float) -> Outcome | None:
    """Continue the run if Slurm has stopped the job; return the action, or None for a failure."""
    run, job = step.run, step.job
    why = why_of(job, facts, StopEvidence(reason=None, restart=job.restart))
    if why == REQUESTED and not is_back(facts, job.restart):
        return None
    if step.attempt is not None:
        # If the step died before it wrote a line, the newest line belongs to another attempt.
        explain_last(run, why)
    continue_run(run, job, facts, why, patience_s)
    return Outcome(f"the job was stopped: {why}")


def _has_ended(attempt: AttemptRecord, job: Job, facts: Mapping[str, str], patience_s: float) -> bool:
    """Whether Slurm knows that the attempt's step has ended. Until then, another srun waits for its hosts.

    After a quick restart of a host, or the death of a slurmstepd, Slurm never learns it. Without any answer
    about steps, the step counts as ended.
    """
    end = end_of(facts, told_end(job.environ))
    wait_s = patience_s if end is None else min(patience_s, max(0.0, end - time.time() - _LAST_S))
    deadline = time.monotonic() + wait_s
    # A nonce is JOB.STEP.RESTART. The lines of `setup` may have started steps of the user's own.
    number = attempt.nonce.partition(".")[2].partition(".")[0]
    list_steps = partial(programs.numbered_steps, *component_ids(job.environ), timeout_s=10)
    was_listed = False
    while True:
        left_s = max(0.0, deadline - time.monotonic())
        try:
            steps = programs.patiently(list_steps, left_s)
        except SchedulerError:
            return not was_listed
        if number not in steps:
            return True
        was_listed = True
        if time.monotonic() + _STEP_PAUSE_S > deadline:
            return False
        time.sleep(_STEP_PAUSE_S)


def _is_ending(run: RunDir, facts: Mapping[str, str], told: float | None) -> bool:
    """Whether the job ends before another attempt in it could make a step and save, as far as is known."""
    if (end := end_of(facts, told)) is None:
        return False
    # An attempt that crashed has recorded no duration of a save itself.
    saves = (save.work_s for save in save_events(run) if save.work_s is not None)
    lead_s = max(measured_lead_s(run) or 0.0, max(saves, default=0.0))
    # The newest: the first attempt may have prepared the data.
    starts = [each.first_step_s for each in read_attempts(run) if each.first_step_s is not None]
    start_s = starts[-1] if starts else 0.0
    return end - time.time() < start_s + margin_s(lead_s, length_s(facts))


def _decision(step: Step) -> Decision:
    """Record the crash and return the decision of the restart policy; on a full disk, `stop`."""
    run, job = step.run, step.job
    hint = crash_hint(run.job_log(job.environ["SLURM_JOB_ID"]))
    record = partial(
        record_crash, run, step.code, job=job.environ["SLURM_JOB_ID"], restart=job.restart, hint=hint
    )
    try:
        _insisting(record)
        decision = restart_policy.after_failure(run, load_resolved(run.config, run.job))
        # On a full disk the next attempt would end like this one.
        keep_reserve(run)
        return decision
    except OSError as error:
        nonce = step.attempt.nonce if step.attempt else ""
        return Decision("stop", note_full_disk(run, nonce, error, record))
    finally:
        give_up_reserve(run)


def crash_hint(log: Path) -> CrashHint:
    """Return whether a job's log shows an out-of-memory kill, for ranks that ended without a message."""
    text = read_end(log, _OOM_BYTES).decode("utf-8", "replace")
    # Each attempt ends with a line of `main`.
    text = text.rpartition("\nstk: ")[2]
    if (tasks := _OOM_OF_TASKS.search(text)) is not None:
        rank: int | None = None
        with suppress(StkError, ValueError):
            rank = min(int(name) for name in expand(f"[{tasks[1]}]"))
        return CrashHint(kind=OOM_KILLED, rank=rank)
    return CrashHint(kind=OOM_KILLED) if _OOM_OF_STEP.search(text) else CrashHint()


def _insisting(record: Callable[[], object]) -> None:
    """Call it again if the file system does not answer, as a network file system may for a moment."""
    for pause_s in _REPEAT_S:
        try:
            record()
            return
        except OSError as error:
            if error.errno in NO_ROOM:
                raise
            time.sleep(pause_s)
    record()


def _decide_in_job(run: RunDir, code: int, in_place: bool) -> Outcome:
    """As `decide`; if no controller answers, tell the user, and ask again until the job ends: it is idle."""
    try:
        return decide(run, code, os.environ, in_place=in_place)
    except SlurmUnavailable:
        rest_s = _rest_s(os.environ)
        if rest_s <= 0 or not programs.is_installed():
            raise
        print(f"stk: no controller answers; it is asked for {rest_s / 60:.0f} min more", flush=True)
        return decide(run, code, os.environ, rest_s, in_place=in_place)


def _rest_s(environ: Mapping[str, str]) -> float:
    """Seconds for which a controller can be asked before the job ends; 0 if its end is not known."""
    return max(0.0, (told_end(environ) or 0.0) - time.time() - _LAST_S)


def main() -> int:
    what, code, *overrides = sys.argv[1:]
    in_place = overrides == [IN_PLACE]
    try:
        if Path(what).is_file():
            run = run_of(load(Path(what), [] if in_place else overrides))
        else:
            run = find_run(what)
        if not run.config.exists():
            print("stk: the step ended before its run began: see above", flush=True)
            return ExitCode.FAILED
        try:
            outcome = _decide_in_job(run, int(code), in_place)
        except StkError as error:
            notify(run, "failure", f"it could not be started again: {error}")
            raise
        print(f"stk: {outcome.text}", flush=True)
    except StkError as error:
        print(f"stk: not started again; use stk resume. {concealed(str(error))}", flush=True)
        return error.exit_code
    return ExitCode.RESTART_STEP if outcome.again else 0


if __name__ == "__main__":
    sys.exit(main())
